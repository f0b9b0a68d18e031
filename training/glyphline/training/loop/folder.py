"""The folder of a run: what is in it, when it may be gone on with, and how a network is taken out of it."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from glyphline.training.config import TrainingConfig, read_config
from glyphline.training.datasets.checks import check_data, source_labels
from glyphline.training.errors import TrainingError
from glyphline.training.loop.module import RecogniserModule
from glyphline.training.metrics_log import MetricsLog
from glyphline.training.networks.recogniser import RecogniserNetwork
from glyphline.training.run_folder import (
    CHECKPOINTS_NAME,
    CONFIG_NAME,
    METRICS_NAME,
    START_NAME,
    last_checkpoint,
    no_checkpoint,
)
from glyphline.training.vocabulary import ALPHABET_NAME, run_alphabet

Which = Literal["best", "last"]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of a run, and how it did.

    Attributes:
        path: The file.
        which: `best` or `last`.
        epoch: The epoch at whose end it was written, from 0.
        error: Error rate of its validation; None if it was not validated.
    """

    path: Path
    which: Which
    epoch: int
    error: float | None

    def __str__(self) -> str:
        """Says it for people."""
        error = "" if self.error is None else f", validation error {self.error:.2%}"
        return f"the {self.which} checkpoint (epoch {self.epoch}{error})"


def epoch_of(checkpoint: Path) -> int:
    """Returns the epoch, from 0, at whose end a checkpoint was written."""
    return int(torch.load(checkpoint, map_location="cpu", weights_only=False, mmap=True)["epoch"])


def choose_checkpoint(run: Path, which: Which = "best") -> Checkpoint:
    """Chooses the checkpoint of a run that is exported.

    Args:
        run: Folder of the run.
        which: `best` takes the one with the lowest error rate in validation; of two with the same rate, and where none
            was validated, the last, which was trained for longest. `last` takes that in any case.

    Raises:
        TrainingError: If the run has no checkpoint.
    """
    path = last_checkpoint(run)
    if not path.exists():
        raise TrainingError(no_checkpoint(run))
    rows = MetricsLog(run / METRICS_NAME).rows()
    errors = {int(row["epoch"]): row["validation_error"] for row in rows if "validation_error" in row}
    epoch = epoch_of(path)
    last = Checkpoint(path, "last", epoch, errors.get(epoch))
    if which == "last":
        return last
    better = []
    for other in sorted(path.parent.glob("best-*.ckpt")):
        epoch = epoch_of(other)
        error = errors.get(epoch)
        if error is not None and (last.error is None or error < last.error):
            better.append((error, -epoch, other))
    if not better:
        return last
    error, epoch, other = min(better)
    return Checkpoint(other, "best", -epoch, error)


def complete_config(config: TrainingConfig, data_root: Path, folder: Path, *, checked: bool = False) -> TrainingConfig:
    """Returns a configuration with its alphabet, learnt from the labels where it is to be, and checks all labels.

    Args:
        config: The configuration.
        data_root: Folder below which its data are.
        folder: Where a learnt vocabulary is kept, or is already.
        checked: Whether the data were checked before, by `check_run`.

    Raises:
        AlphabetError: If labels have characters outside the alphabet; all are named with their lines.
        DataError: If data sets or pictures are missing or not as their format wants them.
    """
    labels = None if config.vocabulary is None else source_labels(config, data_root)
    alphabet = run_alphabet(config, folder, labels)
    if not checked:
        check_data(config, data_root, alphabet)
    return config.with_alphabet(alphabet)


def open_run(
    config_path: Path,
    data_root: Path,
    run: Path,
    *,
    resume: bool = True,
    seed: int | None = None,
    checked: bool = False,
) -> TrainingConfig:
    """Makes the folder of a run, or makes sure that it may be gone on with.

    Args:
        config_path: TOML configuration.
        data_root: Folder below which the configuration's paths lie.
        run: Folder of the run.
        resume: Go on with what is there; else it is removed.
        seed: Takes the place of the configuration's.
        checked: Whether the data were checked before, by `check_run`.

    Returns:
        The configuration, with its alphabet.

    Raises:
        TrainingError: If the configuration or the data do not fit, or the run was begun with another configuration.
        AlphabetError: If labels have characters outside the alphabet.
    """
    config = read_config(config_path)
    text = config_path.read_text(encoding="utf-8-sig") if seed is not None else ""
    if seed is not None:
        config = config.model_copy(update={"seed": seed})
    if not resume:
        (run / ALPHABET_NAME).unlink(missing_ok=True)
    config = complete_config(config, data_root, run, checked=checked)
    run.mkdir(parents=True, exist_ok=True)
    kept = run / CONFIG_NAME
    if not resume:
        shutil.rmtree(run / CHECKPOINTS_NAME, ignore_errors=True)
        (run / METRICS_NAME).unlink(missing_ok=True)
    elif last_checkpoint(run).exists() and kept.exists():
        before = read_config(kept).with_alphabet(config.make_alphabet())
        free = {"loop", "licence", "data"}  # how long and how fast may change; what is trained may not
        old, new = before.model_dump(exclude=free), config.model_dump(exclude=free)
        if old != new:
            changed = ", ".join(name for name in new if old[name] != new[name])
            raise TrainingError(
                f"{run} was begun with another configuration ({kept} differs in {changed}): "
                "choose another --output, or --fresh"
            )
    if not last_checkpoint(run).exists():
        (run / START_NAME).unlink(missing_ok=True)
    if seed is not None:
        kept.write_text(with_seed(text, seed), encoding="utf-8")
    elif config_path.resolve() != kept.resolve():
        shutil.copyfile(config_path, kept)
    return config


def with_seed(text: str, seed: int) -> str:
    """Returns a configuration's text with another seed, and all else as it was.

    Args:
        text: TOML.
        seed: The seed.

    Raises:
        TrainingError: If the text writes its seed in a way that is not understood.
    """
    line = f"seed = {seed}"
    changed = f"{line}\n{text}"
    if "seed" in tomllib.loads(text):
        changed = re.sub(r"^[ \t]*seed[ \t]*=[ \t]*[0-9_]+", line, text, count=1, flags=re.MULTILINE)
    if tomllib.loads(changed) != tomllib.loads(text) | {"seed": seed}:
        raise TrainingError(f"cannot put {line!r} into the configuration: write its seed on a line of its own")
    return changed


def take_weights(module: RecogniserModule, run: Path) -> list[str]:
    """Starts a network from the averaged weights of another run, as far as the two have the same tensors.

    Args:
        module: The network to be trained.
        run: Folder of the other run.

    Returns:
        Names of the tensors that keep their initial values: the other run lacks them, or has them of another shape.

    Raises:
        TrainingError: If the run has no checkpoint, or nothing in common with the network.
    """
    _, network, _ = load_network(run)
    there = network.state_dict()
    here = module.network.state_dict()
    common = {name: there[name] for name, own in here.items() if name in there and there[name].shape == own.shape}
    if not common:
        raise TrainingError(f"the network of {run} has nothing in common with this one")
    module.network.load_state_dict(common, strict=False)
    module.averaged_network().load_state_dict(module.network.state_dict())
    return sorted(set(here) - set(common))


def note_start(run: Path, other: Path) -> None:
    """Keeps in a run's folder which runs came before it, and how many strips each had seen."""
    _, _, strips_seen = load_network(other)
    records = [*read_start(other), {"run": other.name, "strips_seen": strips_seen}]
    (run / START_NAME).write_text(json.dumps(records) + "\n", encoding="utf-8")


def read_start(run: Path) -> list[dict[str, str | int]]:
    """Returns what `note_start` kept, the first run first; nothing where a run started from nothing."""
    path = run / START_NAME
    if not path.exists():
        return []
    records = json.loads(path.read_text(encoding="utf-8"))
    return [{"run": str(each["run"]), "strips_seen": int(each["strips_seen"])} for each in records]


def load_network(
    run: Path, which: Callable[[Path], Path] | None = None
) -> tuple[TrainingConfig, RecogniserNetwork, int]:
    """Loads the averaged network of a run, ready for evaluation.

    Args:
        run: Folder of the run.
        which: Chooses the checkpoint from the run's folder; the last one where it is not given.

    Returns:
        Configuration, network, and the number of strips it has seen.

    Raises:
        TrainingError: If the run has no checkpoint.
    """
    config = read_config(run / CONFIG_NAME)
    config = config.with_alphabet(run_alphabet(config, run))
    path = which(run) if which is not None else last_checkpoint(run)
    if not path.exists():
        raise TrainingError(no_checkpoint(run))
    module = RecogniserModule(config)
    module.load_state_dict(torch.load(path, map_location="cpu", weights_only=False)["state_dict"])
    return config, module.averaged_network().eval(), int(module.strips_seen)
