"""`glyphline data init`: writes a first configuration from your data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from glyphline.cli.data.options import FormatName, FormatOption, Quiet, check_exists, show_progress
from glyphline.cli.exit_codes import CommandError
from glyphline.cli.options import DataRootOption
from glyphline.cli.training_room import training_room

EXAMPLES = """\b
Examples:
  glyphline data init data/strips > strips.toml
  glyphline data init data/strips --group "^([^_]+)_" --name letters > letters.toml

\b
The configuration has your labels' characters, room for your widest strips, and one strip in ten held out by a hash of
its name. --group keeps what belongs together on one side: strips of one writer, page or device; without it the figures
flatter where strips resemble each other. It holds out about a tenth of the groups, which may be more or fewer of the
strips; how many it came to stands at the top. Save it as NAME.toml, NAME being the data set's or that of --name: so the
commands call it that it lists.
"""


def init(
    *,
    path: Annotated[Path, typer.Argument(metavar="DATASET", help="A data set.", show_default=False)],
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the recogniser.  [default: the folder's]")] = "",
    group: Annotated[
        str,
        typer.Option(
            metavar="REGEX",
            help="What of a name tells the writer, page or device; these are held out whole.",
            show_default=False,
        ),
    ] = "",
    height: Annotated[int, typer.Option(metavar="N", min=8, help="Height that strips are brought to.")] = 40,
    epochs: Annotated[int, typer.Option(metavar="N", min=1, help="Length of the training.")] = 30,
    data_root: DataRootOption = Path("data"),
    format_name: FormatOption = FormatName.AUTO,
    quiet: Quiet = False,
) -> None:
    """Writes a configuration for a data set to standard output: enough to train with, and to change."""
    check_exists(path)
    try:
        re.compile(group)
    except (re.error, OverflowError, RecursionError) as error:
        raise CommandError(
            f'--group {group!r}: no regular expression: {error}; an example is "^([^_]+)_", all before the first _'
        ) from error
    with training_room():
        from glyphline.training.datasets.commands.start import write_first_config

        with show_progress(quiet, None, "Measuring") as progress:
            text = write_first_config(
                path,
                data_root=data_root,
                name=name,
                format=format_name.value,
                group=group,
                height=height,
                epochs=epochs,
                progress=progress,
            )
    print(text, end="")
