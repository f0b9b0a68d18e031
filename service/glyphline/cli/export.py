"""`glyphline export`: turns a training run into a bundle that can be served."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from glyphline.cli.exit_codes import CommandError
from glyphline.cli.options import DataRootOption
from glyphline.cli.training_room import training_room

EXAMPLES = """\b
Examples:
  glyphline export runs/digits --output models/ --name digits --version 2 --head ctc
  glyphline serve --model-repository models/
"""


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
    data_root: DataRootOption = Path("data"),
) -> None:
    """Exports a run as a bundle: ONNX and all that serving needs. Refused unless it reads just as the network does."""
    if not run.is_dir():
        raise CommandError(f"{run}: no such folder; it is the --output of `glyphline train`")
    with training_room():
        from glyphline.training.export import export_run

        bundle = export_run(run, output, name, version, head.value if head is not None else None, data_root)
    print(bundle)
