"""`glyphline train`: trains a recogniser as a configuration file says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glyphline.cli.exit_codes import CommandError
from glyphline.cli.training_room import training_room

EXAMPLES = """\b
Examples:
  glyphline train training/glyphline/training/configs/digits.toml --data-root data/ --output runs/digits
  glyphline train my.toml --data-root data/ --output runs/mine --fresh
  glyphline train mine.toml --data-root data/ --output runs/mine --start-from runs/digits
  glyphline export runs/digits --output models/ --name digits --version 2
"""


def train(
    *,
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The configuration, a TOML file.")],
    data_root: Annotated[
        Path, typer.Option(metavar="DIR", envvar="GLYPHLINE_DATA_ROOT", help="Folder that its data sets are below.")
    ] = Path("data"),
    output: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Folder of the run.  [default: runs/<name of the configuration>]")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Go on from the run's last checkpoint, or begin anew.")
    ] = True,
    start_from: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN", help="Start a new run from the weights of another one, as far as their networks agree."
        ),
    ] = None,
) -> None:
    """Trains a recogniser. Stop it with Ctrl-C and start it again: it goes on where it was."""
    run = Path("runs", config.stem) if output is None else output
    if not config.is_file():
        raise CommandError(f"{config}: no such file; digits.toml in glyphline/training/configs is one to start from")
    with training_room():
        from glyphline.training import loop

        loop.train(config, data_root, run, resume, start_from)
