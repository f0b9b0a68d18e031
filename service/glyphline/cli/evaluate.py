"""`glyphline evaluate`: measures a model on data sets whose texts are known."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glyphline.cli.options import BeamWidthOption, DecoderOption, decoding_options
from glyphline.cli.training_room import training_room

if TYPE_CHECKING:
    from glyphline.training.evaluate import EvaluationResult

EXAMPLES = """\b
Examples:
  glyphline evaluate tests/data/strips
  glyphline evaluate strips.tsv --model models/digits/2 --decoder beam --output report/

\b
A data set is a folder with labels.tsv (name, tab, text) or the name of a set below --data-root. Exact is the share of
images read without any error, CER all edits over all true characters; the brackets are 95 % intervals.
"""


def evaluate(
    *,
    data_sets: Annotated[list[str], typer.Argument(metavar="DATASET", help="Data sets.", show_default=False)],
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME|FOLDER", help="Name of a model, or the folder of a bundle.")
    ] = "digits",
    data_root: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", envvar="GLYPHLINE_DATA_ROOT", help="Folder of named data sets.", show_default=False
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Read at most N images of each set.", show_default=False)
    ] = None,
    decoder: DecoderOption = None,
    beam_width: BeamWidthOption = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write a report with the worst readings here.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a data set.")] = False,
) -> None:
    """Measures a model: exact share and character error rate, with their uncertainty."""
    options = decoding_options(decoder, beam_width)
    with training_room():
        from glyphline.training.evaluate import evaluate_command  # noqa: PLC0415

        results = evaluate_command(model, data_sets, data_root, options, limit, output)
    if as_json:
        for result in results:
            print(json.dumps(asdict(result), ensure_ascii=False, default=str))
    elif sys.stdout.isatty():
        _print_table(results)
    else:
        for result in results:
            print("\t".join(_columns(result)))


def _columns(result: EvaluationResult) -> tuple[str, ...]:
    (low, high), (cer_low, cer_high) = result.exact_interval, result.cer_interval
    return (
        result.data_set,
        f"{result.images:,}",
        f"{result.exact:.2%} ({low:.2%} to {high:.2%})",
        f"{result.cer:.2%} ({cer_low:.2%} to {cer_high:.2%})",
        f"{result.insertions} / {result.deletions} / {result.substitutions}",
        f"{result.images / result.seconds:,.0f}" if result.seconds else "",
    )


def _print_table(results: list[EvaluationResult]) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table("Data set", "Images", "Exact", "CER", "Inserted / deleted / substituted", "Images/s")
    for result in results:
        table.add_row(*(Text(value) for value in _columns(result)))
    Console().print(table)
