"""`glyphline data texts`: writes what strips say, for a language model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glyphline.cli.data.options import Quiet, check_exists, show_progress
from glyphline.cli.exit_codes import CommandError
from glyphline.cli.options import DataRootOption
from glyphline.cli.training_room import training_room

EXAMPLES = """\b
Examples:
  glyphline data texts words.toml --data-root data/ --count 800000 --output texts.txt
  glyphline language-model texts.txt --order 5 --minimum-count 6 --output words.arpa.gz

\b
Drawn are the texts of rendered and composed sources (without babble and strings of characters, which are no language)
and the labels that real sources train on, each source by its weight, one text a line.
"""


def texts(
    *,
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A configuration.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file; a new one.")],
    sources: Annotated[
        list[int] | None,
        typer.Option("--source", metavar="N", min=1, help="This source alone, counted from 1.", show_default=False),
    ] = None,
    count: Annotated[int, typer.Option(metavar="N", min=1, help="Number of texts.")] = 100_000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The same seed draws the same texts.")] = 1,
    data_root: DataRootOption = Path("data"),
    quiet: Quiet = False,
) -> None:
    """Draws texts as the sources of a configuration do, without drawing their strips."""
    check_exists(config)
    if output.exists():
        raise CommandError(f"{output} exists: name a new file")
    with training_room():
        from glyphline.training.config import read_config
        from glyphline.training.datasets.commands.texts import draw_texts

        drawn = draw_texts(read_config(config), data_root, count, seed, sources or ())
        output.parent.mkdir(parents=True, exist_ok=True)
        partial = output.with_name(f"{output.name}.partial")
        with (
            show_progress(quiet, count, "Drawing") as progress,
            partial.open("w", encoding="utf-8", newline="\n") as file,
        ):
            for number, text in enumerate(drawn, 1):
                file.write(f"{text}\n")
                if number % 1000 == 0 or number == count:
                    progress(number, 0)
        partial.replace(output)
    print(f"{output}: {count:,} texts")
