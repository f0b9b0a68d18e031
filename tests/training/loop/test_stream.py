from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from glyphline.training.config import TrainingConfig, read_config
from glyphline.training.datasets.samples import Sample, SkipCounts, UnusableSampleError
from glyphline.training.errors import DataError
from glyphline.training.loop.stream import SKIPS, StripStream, plan_pools

MakeConfig = Callable[..., Path]


class Strips:
    """Strips of many kinds, some of which cannot be used."""

    def draw(self, random: np.random.Generator) -> Sample:
        kind = int(random.integers(8))
        if kind == 0:
            raise UnusableSampleError("unreadable", "broken.png")
        text, width = "12", int(random.integers(20, 60))
        if kind == 1:
            text, width = "0" * 30, 20
        if kind == 2:
            width = 20_000
        pixels = random.integers(0, 256, (16, width)).astype(np.uint8)
        return Sample(pixels, text, {1: "crowded.png", 2: "wide.png"}.get(kind, "good.png"))


class Broken:
    """Nothing but what cannot be used."""

    def draw(self, random: np.random.Generator) -> Sample:
        raise UnusableSampleError("unreadable", "broken.png")


@pytest.fixture
def config(tmp_path: Path, make_config: MakeConfig) -> TrainingConfig:
    config = read_config(make_config(tmp_path))
    loop = config.loop.model_copy(update={"strips_per_epoch": 4096})
    return config.model_copy(update={"loop": loop, "sources": config.sources[:1]})


def drain(batches: Iterable[dict[str, Any]]) -> tuple[int, SkipCounts, list[float]]:
    """Strips, what was skipped, and a figure of each batch."""
    skips, strips, figures = SkipCounts(), 0, []
    for batch in batches:
        skips.merge(batch.pop(SKIPS))
        strips += len(batch["widths"])
        figures.append(float(batch["images"].float().mean()))
        assert all(isinstance(value, torch.Tensor) for value in batch.values())
    return strips, skips, figures


def test_pools_are_shared_evenly() -> None:
    assert plan_pools(51_200, 1) == (1024, 50)
    assert plan_pools(2000, 1) == (1024, 1)
    assert plan_pools(96, 1) == (96, 1)
    assert plan_pools(96, 2) == (48, 2)
    assert plan_pools(51_200, 4) == (1024, 48)
    assert plan_pools(3, 4) == (1, 4)


def test_what_cannot_be_trained_on_is_counted_by_reason_and_named(config: TrainingConfig) -> None:
    strips, skips, _ = drain(StripStream(config, [Strips()], 0))
    assert set(skips.counts) == {"unreadable", "too wide", "label longer than its frames"}
    assert skips.examples == {
        "unreadable": ["broken.png"],
        "too wide": ["wide.png"],
        "label longer than its frames": ["crowded.png"],
    }
    assert all(4096 / 8 * 0.8 < count < 4096 / 8 * 1.2 for count in skips.counts.values())
    assert sum(skips.counts.values()) + strips >= 4096, "batches are filled up with strips that they have"


def test_counts_arrive_from_worker_processes(config: TrainingConfig) -> None:
    alone = drain(StripStream(config, [Strips()], 0))
    loader = DataLoader(StripStream(config, [Strips()], 0), batch_size=None, num_workers=2)
    together = drain(loader)
    assert together[1].counts == alone[1].counts
    assert sorted(together[2]) == sorted(alone[2]), "the same batches, whoever makes them"


def test_the_shares_of_the_processes_are_the_epoch(config: TrainingConfig) -> None:
    whole = drain(StripStream(config, [Strips()], 3))
    shares = [drain(StripStream(config, [Strips()], 3, rank, 2)) for rank in range(2)]
    assert sorted(shares[0][2] + shares[1][2]) == sorted(whole[2])
    assert sorted(drain(StripStream(config, [Strips()], 4))[2]) != sorted(whole[2]), "no epoch sees another's strips"


def test_only_ctc_wants_frames_for_every_symbol(config: TrainingConfig) -> None:
    network = config.network.model_copy(update={"heads": ("attention",)})
    config = config.model_copy(update={"network": network})
    _, skips, _ = drain(StripStream(config, [Strips()], 0))
    assert set(skips.counts) == {"unreadable", "too wide"}


def test_an_epoch_of_nothing_is_an_error(config: TrainingConfig) -> None:
    with pytest.raises(DataError, match=r"not one of 1024 .*unreadable \(broken.png\)"):
        drain(StripStream(config, [Broken()], 0))
