"""A learning rate to begin with: the rate is raised from batch to batch until the loss flies off.

Smith 2017, "Cyclical Learning Rates for Training Neural Networks"; Lightning's tuner does it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from pytorch_lightning.tuner.tuning import Tuner

from glyphline.training.config import read_config
from glyphline.training.datasets.build import build_source
from glyphline.training.errors import TrainingError
from glyphline.training.loop.distributed import Processes, started_processes
from glyphline.training.loop.engine import make_trainer, set_threads
from glyphline.training.loop.folder import complete_config
from glyphline.training.loop.module import RecogniserModule
from glyphline.training.loop.stream import StripData

PLOT_NAME = "rate-finder.png"
LOWEST, HIGHEST = 1e-6, 1.0
STEPS = 100
SKIPPED = 5
"""Losses at the beginning whose running mean is of too few batches."""


@dataclass(frozen=True)
class RateSearch:
    """What came of a search.

    Attributes:
        rates: Learning rates, rising.
        losses: Running mean of the loss at each.
        suggestion: The rate at which the loss falls fastest; None where it does not fall.
        plot: PNG file with the curve.
    """

    rates: tuple[float, ...]
    losses: tuple[float, ...]
    suggestion: float | None
    plot: Path


def find_rate(config_path: Path, data_root: Path, output: Path, steps: int = STEPS) -> RateSearch:
    """Searches a learning rate for a configuration; no run is begun and none is changed.

    Args:
        config_path: TOML configuration.
        data_root: Folder below which its data are.
        output: Folder that gets the plot.
        steps: Batches, each with a higher rate than the last.

    Raises:
        TrainingError: If the configuration or the data do not fit, or there are several processes.
    """
    if started_processes().count > 1:
        raise TrainingError("a learning rate is searched by one process: start it without torchrun")
    with tempfile.TemporaryDirectory() as folder:  # nothing that is learnt or saved on the way is kept
        config = complete_config(read_config(config_path), data_root, Path(folder))
        set_threads(Processes())
        torch.manual_seed(config.seed)
        module = RecogniserModule(config)
        module.free_rate = True
        alphabet = config.make_alphabet()
        sources = [build_source(source, data_root, alphabet, image=config.image) for source in config.sources]
        data = StripData(config, sources)
        # Epochs do not end the search, however few strips they have.
        trainer = make_trainer(
            config.loop, Path(folder), Processes(), max_epochs=-1, limit_val_batches=0, enable_checkpointing=False
        )
        found = Tuner(trainer).lr_find(
            module,
            datamodule=data,
            min_lr=LOWEST,
            max_lr=HIGHEST,
            num_training=steps,
            early_stop_threshold=None,  # batches of long and of short strips differ by more than any threshold
            update_attr=False,
        )
    assert found is not None
    rates, losses = found.results["lr"], found.results["loss"]
    search = RateSearch(tuple(rates), tuple(losses), suggest_rate(rates, losses), output / PLOT_NAME)
    output.mkdir(parents=True, exist_ok=True)
    draw_search(search, config.loop.learning_rate)
    return search


def suggest_rate(rates: Sequence[float], losses: Sequence[float]) -> float | None:
    """Returns the rate at which the loss falls fastest on a logarithmic axis of rates, before it is lowest.

    Args:
        rates: Learning rates, each the same factor above the last.
        losses: Loss at each; those that are no number end the curve.

    Returns:
        The rate; None where the loss is nowhere below what it was at first.
    """
    curve = np.asarray(losses, np.float64)
    wrong = np.flatnonzero(~np.isfinite(curve))
    curve = curve[SKIPPED : wrong[0] if wrong.size else None]
    lowest = int(np.argmin(curve)) if curve.size else 0
    if lowest < 2:
        return None
    return float(rates[SKIPPED + int(np.argmin(np.gradient(curve[: lowest + 1])))])


def draw_search(search: RateSearch, configured: float) -> None:
    """Draws loss against rate, with the suggestion and the rate that is configured."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(search.rates, search.losses)
    if search.suggestion is not None:
        axes.axvline(search.suggestion, color="tab:red", label=f"suggested: {search.suggestion:.2g}")
    axes.axvline(configured, color="tab:gray", linestyle="--", label=f"configured: {configured:.2g}")
    axes.set(xscale="log", xlabel="learning rate", ylabel="running mean of the loss", title="Learning rate finder")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(search.plot, dpi=100)
