"""The strips of an epoch: drawn in pools, cut into batches, each a function of the seed and the pool's number alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytorch_lightning as lightning
import torch
from torch.utils.data import DataLoader, IterableDataset

from glyphline.training.config import TrainingConfig
from glyphline.training.datasets.batches import Batch, EncodedStrip, draw_pool, split_pool
from glyphline.training.datasets.feasibility import TOO_LONG, available_frames, needed_frames
from glyphline.training.datasets.samples import SampleSource, SkipCounts
from glyphline.training.errors import DataError
from glyphline.training.loop.distributed import EvenSteps, Processes
from glyphline.training.loop.losses import TensorBatch

POOL = 1024
"""Strips made at a time and cut into batches of equal width."""

SKIPS = "skips"
"""Key in a batch of the `SkipCounts` of its pool; the first batch of a pool has them, from whatever process."""


def plan_pools(strips: int, processes: int) -> tuple[int, int]:
    """Divides an epoch into pools.

    Args:
        strips: Strips of the epoch.
        processes: Processes that train; each has the same number of pools.

    Returns:
        Strips of a pool, and number of pools.
    """
    size = min(POOL, max(1, strips // processes))
    return size, max(1, strips // size // processes) * processes


def to_tensors(batch: Batch) -> TensorBatch:
    """Turns a batch's arrays into tensors, by name."""
    return {
        "images": torch.from_numpy(batch.images),
        "widths": torch.from_numpy(batch.widths),
        "labels": torch.from_numpy(batch.labels),
        "label_lengths": torch.from_numpy(batch.label_lengths),
    }


def drop_infeasible(pool: Iterable[EncodedStrip], frames_per_step: int, skips: SkipCounts) -> list[EncodedStrip]:
    """Leaves out strips that are too narrow for CTC to write their texts: they teach nothing.

    Args:
        pool: Strips.
        frames_per_step: `network.frames_per_step`.
        skips: Counts what is left out.
    """
    kept = []
    for strip in pool:
        if needed_frames(strip.symbols) <= available_frames(strip.pixels.shape[1], frames_per_step):
            kept.append(strip)
        else:
            skips.add(TOO_LONG, strip.source)
    return kept


class StripStream(IterableDataset[dict[str, Any]]):
    """The strips of one epoch in batches; pool `n` of the run is the same whichever process makes it.

    Args:
        config: The run.
        sources: Its sources.
        epoch: Number of the epoch.
        rank: Which of the processes that train this one is.
        processes: Number of processes that train.
    """

    def __init__(
        self, config: TrainingConfig, sources: list[SampleSource], epoch: int, rank: int = 0, processes: int = 1
    ) -> None:
        super().__init__()
        self.config = config
        self.sources = sources
        self.epoch = epoch
        self.rank = rank
        self.processes = processes
        self.alphabet = config.make_alphabet()
        weights = np.array([source.weight for source in config.sources], np.float64)
        self.weights = weights / weights.sum()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yields the batches of this process's share of the pools, as `to_tensors` makes them.

        Raises:
            DataError: If no strip of a pool can be used.
        """
        worker = torch.utils.data.get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker is not None else (0, 1)
        size, pools = plan_pools(self.config.loop.strips_per_epoch, self.processes)
        for number in range(pools)[self.rank :: self.processes][first::step]:
            seed = (self.config.seed, self.epoch * pools + number)
            skips = SkipCounts()
            pool = draw_pool(self.sources, self.weights, self.alphabet, self.config.image, seed, size, skips)
            if "ctc" in self.config.network.heads:
                pool = drop_infeasible(pool, self.config.network.frames_per_step, skips)
            if not pool:
                raise DataError(f"not one of {size} strips can be trained on: {skips}")
            for batch in split_pool(pool, self.config.loop.batch_columns, np.random.default_rng((*seed, 1))):
                yield to_tensors(batch) | {SKIPS: skips}
                skips = SkipCounts()


class StripData(lightning.LightningDataModule):
    """Makes a new stream of strips for every epoch."""

    def __init__(
        self,
        config: TrainingConfig,
        sources: list[SampleSource],
        processes: Processes = Processes(),  # noqa: B008  (frozen)
    ) -> None:
        super().__init__()
        self.config = config
        self.sources = sources
        self.processes = processes

    def train_dataloader(self) -> Iterable[dict[str, Any]]:
        """Returns the batches of the current epoch."""
        epoch = self.trainer.current_epoch if self.trainer is not None else 0
        workers = self.config.loop.workers
        loader = DataLoader(
            StripStream(self.config, self.sources, epoch, self.processes.rank, self.processes.count),
            batch_size=None,
            num_workers=workers,
            prefetch_factor=32 if workers else None,
            worker_init_fn=_one_thread,
        )
        if self.processes.count == 1 or self.trainer is None:
            return loader
        return EvenSteps(loader, self.trainer.strategy.root_device)

    def val_dataloader(self) -> list[int]:
        """Validation runs over the sets that are in memory; Lightning only needs one turn."""
        return [0]


def _one_thread(worker: int) -> None:
    torch.set_num_threads(1)
    os.nice(5)
