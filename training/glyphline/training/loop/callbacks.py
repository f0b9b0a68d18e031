"""What happens around epochs: the run's log, its checkpoints, its early stop."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as lightning
from pytorch_lightning.callbacks import Callback, EarlyStopping, ModelCheckpoint, TQDMProgressBar

from glyphline.training.config import LoopConfig
from glyphline.training.curves import draw_curves
from glyphline.training.datasets.samples import SkipCounts
from glyphline.training.loop.distributed import gather_from_processes
from glyphline.training.loop.module import RecogniserModule
from glyphline.training.metrics_log import MetricsLog
from glyphline.training.run_folder import CHECKPOINTS_NAME, CURVES_NAME, METRICS_NAME

logger = logging.getLogger(__name__)


def skip_figures(prefix: str, skips: SkipCounts) -> dict[str, float]:
    """Returns counts as columns of the metrics log: `<prefix>` has their sum, `<prefix>_<reason>` each of them."""
    reasons = {f"{prefix}_{reason.replace(' ', '_')}": float(count) for reason, count in sorted(skips.counts.items())}
    return {prefix: float(sum(skips.counts.values()))} | reasons


class RunLog(Callback):
    """Writes a row of figures after each epoch, says what was skipped, and redraws the curves.

    Args:
        run: Folder of the run.
        left_out: Strips that were left out before training, of sources and validation sets.
    """

    def __init__(self, run: Path, left_out: SkipCounts) -> None:
        self.metrics = MetricsLog(run / METRICS_NAME)
        self.curves = run / CURVES_NAME
        self.left_out = left_out

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Adds the epoch's row, which is that of all processes."""
        assert isinstance(pl_module, RecogniserModule)
        parts = gather_from_processes((pl_module.sums, pl_module.skips))
        if not trainer.is_global_zero:
            return
        skips = SkipCounts()
        losses: dict[str, list[float]] = {}
        for sums, skipped in parts:
            skips.merge(skipped)
            for name, values in sums.items():
                losses.setdefault(name, []).extend(values)
        row = {"epoch": float(trainer.current_epoch), "strips": float(pl_module.strips_seen)}
        row |= {name: float(np.mean(values)) for name, values in losses.items()}
        row["learning_rate"] = float(trainer.optimizers[0].param_groups[0]["lr"])
        if (trainer.current_epoch + 1) % pl_module.config.loop.validate_every == 0:
            row |= pl_module.figures
        # The column of the log has no better name: what reads it knows it by this one.
        shown = {"strips_seen" if name == "strips" else name: value for name, value in row.items()}
        logger.info(", ".join(f"{name} {value:.4g}" for name, value in shown.items()))
        if skips:
            logger.info("epoch %d: %s", trainer.current_epoch, skips)
        if self.left_out:
            logger.info("left out of the data sets before training: %s", self.left_out)
        row |= skip_figures("skipped", skips)
        if self.left_out:
            row |= skip_figures("left_out", self.left_out)
        self.metrics.append(row)
        draw_curves(self.metrics.rows(), self.curves)


class KeepSigterm(Callback):
    """Leaves SIGTERM to whoever handled it before the run: Lightning ends it as if it had come to its end."""

    def __init__(self) -> None:
        self._handler = signal.getsignal(signal.SIGTERM)

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Takes back what Lightning has just taken for itself."""
        if self._handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._handler)


class StopEarly(EarlyStopping):
    """Stops when the error rate of validation, without teacher forcing, no longer falls.

    A run that has stopped so and is started again stays stopped, until it is given more patience.
    """

    def __init__(self, patience: int) -> None:
        super().__init__("validation_error", patience=patience)
        self._allowed = patience

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes how long it has waited from a checkpoint, and how long it may from the configuration."""
        super().load_state_dict(state_dict)
        self.patience = self._allowed

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Stops before the first step where there is nothing to wait for."""
        if self.wait_count >= self.patience:
            logger.info("stopped early: %d validations without a better error rate", self.wait_count)
            trainer.should_stop = True


def make_callbacks(loop: LoopConfig, run: Path, left_out: SkipCounts) -> list[Callback]:
    """Returns the callbacks of a run.

    Args:
        loop: Patience, and how often it is validated.
        run: Folder of the run.
        left_out: Strips that were left out before training.
    """
    folder = run / CHECKPOINTS_NAME
    callbacks: list[Callback] = [
        # Both at the very end of an epoch: a checkpoint from within one would not resume to the same run.
        ModelCheckpoint(
            folder,
            "best-{epoch:03d}",
            monitor="validation_error",
            every_n_epochs=loop.validate_every,
            save_on_train_epoch_end=True,
        ),
        ModelCheckpoint(folder, "last", enable_version_counter=False, every_n_epochs=1, save_on_train_epoch_end=True),
        RunLog(run, left_out),
        KeepSigterm(),
    ]
    if sys.stdout.isatty():
        callbacks.append(TQDMProgressBar(refresh_rate=20))
    if loop.patience:
        callbacks.append(StopEarly(loop.patience))
    return callbacks
