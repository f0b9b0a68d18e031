"""Whether a configuration can learn at all: it has to get one strip by heart, in seconds, before hours are spent.

Everything that training uses is used: sources, normalisation, alphabet, network, losses, optimiser, and reading without
teacher forcing. What keeps a network from learning by heart is left out: dropout, masking, smoothing, decay.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from glyphline.training.config import TrainingConfig, read_config
from glyphline.training.datasets.batches import EncodedStrip, collate, draw_pool
from glyphline.training.datasets.build import build_source
from glyphline.training.datasets.samples import SkipCounts
from glyphline.training.errors import DataError
from glyphline.training.loop.folder import complete_config
from glyphline.training.loop.losses import head_losses, total_loss
from glyphline.training.loop.module import RecogniserModule
from glyphline.training.loop.stream import drop_infeasible, to_tensors

STEPS = 400
"""Greatest number of steps."""

HOPELESS = 100
"""Steps after which a loss that has not fallen by a tenth will not fall."""

LOOK_EVERY = 10
COPIES = 2
"""The strip is in the batch so often: batch norms want more than one."""

RATE = 3e-3
POOL = 32
SHORTEST = 2
"""Symbols: an order shows only where there are two; a longer text takes longer, and shows nothing more."""


@dataclass(frozen=True)
class SanityResult:
    """What came of one strip.

    Attributes:
        text: Its text.
        source: Where it comes from.
        readings: What each head reads in the end.
        losses: Loss of each head at the first and at the last step.
        steps: Steps that were taken.
        seconds: Time they took.
    """

    text: str
    source: str
    readings: dict[str, str]
    losses: dict[str, tuple[float, float]]
    steps: int
    seconds: float

    @property
    def learnt(self) -> bool:
        """Whether every head reads the text."""
        return all(reading == self.text for reading in self.readings.values())


def overfit_one(config_path: Path, data_root: Path, steps: int = STEPS) -> SanityResult:
    """Draws one strip and trains on it until every head reads it, twice in a row.

    Args:
        config_path: TOML configuration.
        data_root: Folder below which its data are.
        steps: Greatest number of steps.

    Raises:
        TrainingError: If the configuration or the data do not fit, or no strip can be used.
    """
    with tempfile.TemporaryDirectory() as folder:  # a vocabulary that is learnt here is not kept
        config = complete_config(read_config(config_path), data_root, Path(folder))
    config = without_obstacles(config)
    torch.set_num_threads(1)  # of so small a batch more would only wait for each other
    strip = draw_one(config, data_root)
    alphabet = config.make_alphabet()
    text = alphabet.decode(strip.symbols)
    torch.manual_seed(config.seed)
    module = RecogniserModule(config)
    network = module.network
    optimiser = module.configure_optimizers()
    for group in optimiser.param_groups:
        group["lr"] = RATE
    batch = to_tensors(collate([strip] * COPIES))
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    readings: dict[str, str] = {}
    begun, right, step = time.perf_counter(), 0, 0
    while step < steps and right < 2:
        losses = head_losses(network.train(), batch, config.loop)
        last = {name: float(loss.detach()) for name, loss in losses.items()}
        first = first or last
        if not all(np.isfinite(list(last.values()))):
            break
        if step >= HOPELESS and all(last[name] > 0.9 * first[name] for name in last):
            break
        optimiser.zero_grad()
        total_loss(losses, config.loop).backward()  # type: ignore[no-untyped-call]  # as torch has it
        torch.nn.utils.clip_grad_norm_(network.parameters(), config.loop.clip)
        optimiser.step()
        step += 1
        if step % LOOK_EVERY == 0 or step == steps:
            read = network.eval().read(batch["images"][:1], batch["widths"][:1], len(strip.symbols) + 5)
            readings = {head: alphabet.decode(rows[0]) for head, rows in read.items()}
            right = right + 1 if all(reading == text for reading in readings.values()) else 0
    pairs = {name: (first[name], last[name]) for name in first}
    readings = readings or dict.fromkeys(config.network.heads, "")
    return SanityResult(text, strip.source, readings, pairs, step, time.perf_counter() - begun)


def without_obstacles(config: TrainingConfig) -> TrainingConfig:
    """Returns the same configuration without what keeps a network from learning by heart."""
    calm = {"label_smoothing": 0.0, "input_masking": 0.0, "sampling": 0.0, "weight_decay": 0.0}
    return config.model_copy(
        update={
            "network": config.network.model_copy(update={"dropout": 0.0}),
            "loop": config.loop.model_copy(update=calm),
        }
    )


def draw_one(config: TrainingConfig, data_root: Path) -> EncodedStrip:
    """Draws strips as training does, and takes the narrowest of those with some text: it is learnt soonest.

    Raises:
        DataError: If there is none.
    """
    alphabet, skips = config.make_alphabet(), SkipCounts()
    sources = [build_source(source, data_root, alphabet, skips, config.image) for source in config.sources]
    weights = np.array([source.weight for source in config.sources], np.float64)
    drawn = 0
    for number in range(16):
        seed = (config.seed, number)
        pool = draw_pool(sources, weights / weights.sum(), alphabet, config.image, seed, POOL, skips)
        drawn += POOL
        pool = [strip for strip in pool if strip.symbols]
        if "ctc" in config.network.heads:
            pool = drop_infeasible(pool, config.network.frames_per_step, skips)
        pool = [strip for strip in pool if len(strip.symbols) >= SHORTEST] or pool
        if pool:
            return min(pool, key=lambda strip: strip.pixels.shape[1])
    raise DataError(f"none of {drawn} strips has text and can be trained on; {skips}")
