"""`glyphline export`: turns a training run into a bundle that can be served."""

from __future__ import annotations

import logging
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from glyphline.cli.exit_codes import CommandError
from glyphline.cli.options import DataRootOption
from glyphline.cli.stopping import stoppable
from glyphline.cli.training_room import require_torch, training_room

logger = logging.getLogger(__name__)

EXAMPLES = """\b
Examples:
  glyphline export runs/digits --output models/ --name digits --version 2 --head ctc
  glyphline serve --model-repository models/
"""


class CheckpointName(StrEnum):
    """Which checkpoint of a run."""

    BEST = "best"
    LAST = "last"


class Head(StrEnum):
    """Which of a network's heads reads."""

    CTC = "ctc"
    ATTENTION = "attention"
    FLATTEN = "flatten"
    IMAGE_FIRST = "image-first"
    POOLED_STATE = "pooled-state"


def export(
    *,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a training run.")],
    output: Annotated[Path, typer.Option(metavar="DIR", help="Repository that gets <name>/<version>/.")],
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the model.")],
    version: Annotated[int, typer.Option(metavar="N", min=1, help="Version of the model.")] = 1,
    head: Annotated[
        Head | None,
        typer.Option(help="Which head of the network reads.  [default: ctc where it was trained, else the other]"),
    ] = None,
    checkpoint: Annotated[
        CheckpointName,
        typer.Option(help="Of the run's checkpoints, the best by validation, or the last."),
    ] = CheckpointName.BEST,
    data_root: DataRootOption = Path("data"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Exports a run as a bundle: ONNX and all that serving needs. Refused unless it reads just as the network does.

    Its weights are the running average that was validated, of the checkpoint with the lowest validation error.
    """
    if not run.is_dir():
        raise CommandError(f"{run}: no such folder; it is the --output of `glyphline train`")
    chosen = None if head is None else head.value
    with stoppable(lambda: "no bundle was written"), training_room():
        require_torch()
        _check(run, output, name, version, chosen)
        if quiet:
            logging.getLogger("glyphline").setLevel(logging.WARNING)
        logger.info("loading %s", run)
        from glyphline.training.export import export_run

        bundle = export_run(run, output, name, version, chosen, data_root, checkpoint.value)
    print(bundle)


def _check(run: Path, output: Path, name: str, version: int, head: str | None) -> None:
    """Finds what is wrong with the arguments before anything is loaded.

    Raises:
        GlyphlineError: If the bundle is there already, or the run has no checkpoint.
        CommandError: If the run has no such head.
    """
    from glyphline.training.config import read_config
    from glyphline.training.run_folder import CONFIG_NAME, free_target, last_checkpoint, no_checkpoint

    free_target(output, name, version)
    if not last_checkpoint(run).exists():
        raise CommandError(no_checkpoint(run))
    heads = read_config(run / CONFIG_NAME).network.heads
    if head is not None and head not in heads:
        raise CommandError(f"{run} was trained without the head {head}: it has {' and '.join(heads)}")
