"""What the files in the folder of a run are called, for whoever only looks: this imports nothing heavy."""

from __future__ import annotations

from pathlib import Path

from glyphline.training.errors import TrainingError

CONFIG_NAME = "config.toml"
METRICS_NAME = "metrics.csv"
CURVES_NAME = "curves.png"
CHECKPOINTS_NAME = "checkpoints"
START_NAME = "start.json"


def last_checkpoint(run: Path) -> Path:
    """Returns where a run's last checkpoint is, if there is one."""
    return run / CHECKPOINTS_NAME / "last.ckpt"


def no_checkpoint(run: Path) -> str:
    """Says that a folder has nothing to go on with or to export."""
    if (run / CONFIG_NAME).exists():
        return f"{last_checkpoint(run)} does not exist yet: a checkpoint is written at the end of each epoch"
    return f"{last_checkpoint(run)} does not exist: {run} is not the folder of a training run"


def free_target(output: Path, name: str, version: int) -> Path:
    """Returns the folder that a bundle will be in.

    Raises:
        TrainingError: If there is something already.
    """
    target = output / name / str(version)
    if target.exists():
        raise TrainingError(f"{target} exists: choose another --version, or remove it")
    return target
