"""From strips to figures, with the shipped recogniser of each head."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from glyphline.models.recognizer import Recognizer, load_recognizer
from glyphline.training.datasets.real import read_strips
from glyphline.training.datasets.samples import Sample
from glyphline.training.report.measure import Measured, coverage_level, measure


@pytest.fixture(scope="module")
def recognizer() -> Recognizer:
    return load_recognizer("digits-ctc")


@pytest.fixture(scope="module")
def measured(recognizer: Recognizer, strips_folder: Path) -> Measured:
    samples = read_strips(strips_folder)
    samples[3:5] = [replace(sample, text=sample.text + "0") for sample in samples[3:5]]
    return measure(recognizer, samples, "strips", compare="digits", compare_confidences=True)


def test_figures_add_up(shipped_version: int, measured: Measured) -> None:
    figures, lines = measured.figures, measured.lines
    assert figures.model == f"digits-ctc {shipped_version}"
    assert figures.images == len(lines)
    assert figures.exact == sum(line.truth == line.read for line in lines) / len(lines)
    for groups in (figures.by_length, figures.by_width):
        assert sum(group.images for group in groups) == len(lines)
        assert sum(group.exact * group.images for group in groups) == pytest.approx(figures.exact * len(lines))
    edits = sum(each.count for each in figures.confusions if each.truth != each.read)
    assert edits == figures.insertions + figures.deletions + figures.substitutions == figures.cer * figures.characters
    assert sum(each.lines for each in figures.reliability) == len(lines)
    for value, interval in (
        (figures.exact, figures.exact_interval),
        (figures.exact, figures.exact_bootstrap),
        (figures.cer, figures.cer_interval),
        (figures.wer, figures.wer_interval),
    ):
        assert interval[0] <= value <= interval[1]
    assert [each.confidence for each in figures.worst] == sorted((m.confidence for m in figures.worst), reverse=True)
    assert len(figures.worst) == sum(line.truth != line.read for line in lines)


def test_confidences_are_compared(measured: Measured) -> None:
    shipped, refitted, mean, product, weakest = measured.figures.confidence
    assert refitted.separation is None
    assert shipped.calibration_error == pytest.approx(measured.figures.calibration_error)
    assert shipped.coverage == measured.figures.coverage
    assert {each.lines for each in (mean, product, weakest)} == {measured.figures.images}


def test_confidences_are_compared_only_where_asked(recognizer: Recognizer, strips_folder: Path) -> None:
    assert measure(recognizer, read_strips(strips_folder)[:2], "two").figures.confidence == ()


def test_a_refused_strip_is_wrong_and_named(recognizer: Recognizer, strips_folder: Path) -> None:
    wide = Sample(np.full((8, 8000), 255, dtype=np.uint8), "", "banner.png")
    found = measure(recognizer, [*read_strips(strips_folder)[:2], wide], "wide", compare_confidences=True)
    [refusal] = found.figures.refused
    assert refusal.source == "banner.png"
    assert "wide" in refusal.reason
    assert not found.lines[2].counts.exact
    assert found.lines[2].confidence == 0
    assert found.figures.exact <= 2 / 3
    assert found.figures.confidence[0].lines == 2


def test_thresholds_say_what_passes_them() -> None:
    confidences, right = [0.9, 0.8, 0.7, 0.6], [True, True, True, False]
    found = coverage_level(confidences, right, 0.99)
    assert (found.accuracy, found.share, found.threshold, found.accepted, found.wrong) == (0.99, 0.75, 0.7, 3, 0)
    assert found.interval == pytest.approx((0.438, 1.0), abs=1e-3)
    none = coverage_level([0.9], [False], 0.99)
    assert (none.threshold, none.accepted, none.share) == (None, 0, 0)
