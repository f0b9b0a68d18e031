"""`glyphline data convert`: writes a data set in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glyphline.cli.data.options import CutName, FormatName, FormatOption, Quiet, TargetName, check_exists, show_progress
from glyphline.cli.training_room import training_room

EXAMPLES = """\b
Examples:
  glyphline data convert pages/ lines/                        lines of PAGE or ALTO pages, cut out
  glyphline data convert strips/ strips.lmdb --to lmdb
  glyphline data convert train.lmdb shards/ --to webdataset --shard-size 5000
"""


def convert(
    *,
    source: Annotated[Path, typer.Argument(metavar="DATASET", help="A data set of any format.", show_default=False)],
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="The new one; a new folder.", show_default=False)],
    target: Annotated[TargetName, typer.Option("--to", help="Format of the new one.")] = TargetName.FOLDER,
    format_name: FormatOption = FormatName.AUTO,
    cut: Annotated[
        CutName, typer.Option(help="Cut lines from pages by their polygon or by the box around it.")
    ] = CutName.POLYGON,
    shard_size: Annotated[int, typer.Option(metavar="N", min=1, help="Samples in a shard of webdataset.")] = 1000,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Leave out what cannot be read, instead of stopping.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Writes a data set in another format; the bytes of its pictures stay as they are."""
    check_exists(source)
    with training_room():
        from glyphline.training.datasets.commands.convert import convert as write

        with show_progress(quiet, None, "Converting") as progress:
            done = write(
                source,
                output,
                target.value,
                format=format_name.value,
                cut=cut.value,
                shard_size=shard_size,
                skip_damaged=skip_damaged,
                progress=progress,
            )
    print(f"{output}: {done.written:,} strips{f'; {done.skips}' if done.skips else ''}")
