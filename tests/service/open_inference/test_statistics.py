"""Statistics add up what batches took, of the models that are held."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from glyphline.models.decoding.readings import Alternative, Reading
from glyphline.models.errors import UndecodableImageError
from glyphline.service.entries import Withdrawn
from glyphline.service.messages import JobResult
from glyphline.service.metrics import Metrics
from glyphline.service.open_inference.descriptions import statistics_message
from glyphline.service.open_inference.statistics import Statistics

READING = Reading("1", 1.0, (Alternative("1", 1.0, 0.0),))
STAGES = {"decode_image": 0.25, "infer": 0.5, "search": 0.125}


def model(name: str) -> Any:  # noqa: ANN401  # one that is served needs a bundle
    return SimpleNamespace(name=name, version=2, key=(name, 2))


def test_batches_add_up() -> None:
    catalogue: Any = SimpleNamespace(models=[model("digits"), model("words")])
    metrics = Metrics()
    statistics = Statistics(catalogue, metrics, clock=lambda: 1234.5)
    bad = UndecodableImageError("no image")
    statistics.observe_batch(("digits", 2), [0.5, 1.5], JobResult([READING, bad], 1.0, STAGES))
    statistics.observe_batch(("digits", 2), [0.0], JobResult([READING], 2.0, {"infer": 1.0}))
    withdrawn: Any = SimpleNamespace(model=model("digits"), decoder="greedy", width=64)
    metrics.count_outcome(withdrawn, Withdrawn())
    for decoder, count in (("greedy", 3), ("beam", 2)):
        metrics.images.labels("digits", "2", decoder, "ok").inc(count)
    (digits, words) = statistics_message(catalogue.models, statistics).model_stats
    assert (digits.name, digits.version, digits.last_inference) == ("digits", "2", 1_234_500)
    assert (digits.inference_count, digits.execution_count) == (5, 2)
    told = digits.inference_stats
    assert (told.success.count, told.success.ns) == (5, 3_500_000_000)  # 0.5 + 1.0 and 0.0 + 2.0
    assert (told.fail.count, told.fail.ns) == (1, 2_500_000_000)
    assert (told.queue.count, told.queue.ns) == (3, 2_000_000_000)
    assert (told.compute_input.count, told.compute_input.ns) == (3, 500_000_000)
    assert (told.compute_infer.count, told.compute_infer.ns) == (3, 2_000_000_000)
    assert (told.compute_output.count, told.compute_output.ns) == (3, 250_000_000)
    assert [each.batch_size for each in digits.batch_stats] == [1, 2]
    assert [each.compute_infer.ns for each in digits.batch_stats] == [1_000_000_000, 500_000_000]
    assert [each.compute_infer.count for each in digits.batch_stats] == [1, 1]
    assert (words.inference_count, words.execution_count, words.last_inference) == (0, 0, 0)
    assert not words.batch_stats


def test_models_that_are_not_held_any_more_are_forgotten() -> None:
    catalogue: Any = SimpleNamespace(models=[model("old")])
    statistics = Statistics(catalogue, Metrics())
    statistics.observe_batch(("old", 2), [0.0], JobResult([READING], 1.0))
    catalogue.models = [model("new")]
    statistics.observe_batch(("new", 2), [0.0], JobResult([READING], 1.0))
    assert statistics.of(model("old")).batches == 0
    assert statistics.of(model("new")).batches == 1
    assert statistics.of(model("new")).read.seconds == pytest.approx(1.0)
