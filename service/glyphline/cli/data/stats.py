"""`glyphline data stats`: counts strips, lengths, widths and characters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glyphline.cli.data.options import (
    ConfigOption,
    FormatName,
    FormatOption,
    Json,
    Quiet,
    check_exists,
    count_strips,
    show_progress,
)
from glyphline.cli.options import DataRootOption
from glyphline.cli.training_room import training_room

if TYPE_CHECKING:
    from glyphline.training.datasets.commands.stats import Stats

EXAMPLES = """\b
Examples:
  glyphline data stats strips/
  glyphline data stats train/ test/ --plot stats.png
  glyphline data stats mine.toml --data-root data/ --json
"""


def stats(
    *,
    paths: Annotated[
        list[Path], typer.Argument(metavar="DATASET|CONFIG", help="Data sets or configurations.", show_default=False)
    ],
    config: ConfigOption = None,
    data_root: DataRootOption = Path("data"),
    format_name: FormatOption = FormatName.AUTO,
    plot: Annotated[
        Path | None, typer.Option(metavar="PNG", help="Draw the distributions here.", show_default=False)
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Counts strips and characters, and tells how long texts and how wide pictures are."""
    check_exists(*paths, config)
    with training_room():
        from glyphline.training.datasets.commands.inputs import open_inputs, readable
        from glyphline.training.datasets.commands.stats import draw_stats, measure

        inputs = readable(open_inputs(paths, data_root=data_root, format=format_name.value, config=config))
        with show_progress(quiet, count_strips(inputs), "Measuring") as progress:
            results = measure(inputs, progress)
        if plot is not None:
            draw_stats(results, inputs.image.height, plot)
    if as_json:
        print(json.dumps([result.summary() for result in results], ensure_ascii=False))
    else:
        for result in results:
            _print(result)


def _print(result: Stats) -> None:
    """Prints a data set in numbers, and its characters with tabs between, the most frequent first."""
    from glyphline.training.datasets.commands.stats import spread

    summary = result.summary()
    print(f"{result.name}: {result.strips:,} strips, {result.unreadable:,} unreadable, {result.empty:,} without text")
    lengths = [length for length, count in result.lengths.items() for _ in range(count)]
    for title, values in (
        ("length of the text", spread(tuple(lengths))),
        ("height in pixels", summary["heights"]),
        ("width once normalised", summary["widths"]),
    ):
        if isinstance(values, dict):
            print(
                f"  {title:22} " + ", ".join(f"{name.replace('_', ' ')} {value:,.0f}" for name, value in values.items())
            )
    print(f"  {len(result.characters)} characters, {sum(result.characters.values()):,} in all")
    for character, count in result.characters.items():
        shown = {" ": "space"}.get(character, character if character.isprintable() else ascii(character))
        print(f"  {shown}\t{count:,}")
