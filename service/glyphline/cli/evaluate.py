"""`glyphline evaluate`: measures a model on data sets whose texts are known."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glyphline.cli.options import (
    BeamWidthOption,
    DecoderOption,
    ModelOption,
    RepositoryOption,
    VersionOption,
    decoding_options,
)
from glyphline.cli.selection import find_bundle
from glyphline.cli.training_room import training_room

if TYPE_CHECKING:
    from glyphline.training.evaluate import EvaluationResult

EXAMPLES = """\b
Examples:
  glyphline evaluate tests/data/strips
  glyphline evaluate mnist-1-8 mnist-9-16 registers meters blank --data-root data/
  glyphline evaluate scans/ --model models/digits/2 --decoder beam --output report/

\b
A data set is a folder with labels.tsv (name, tab, text), or a name of glyphline/training/configs/evaluation.toml, whose
pictures are below --data-root. Exact is the share of images read without any error; CER is all edits over all true
characters; ranges are 95 % intervals. "Straight through" is the share of images whose confidence is so high that all
of them together are 99.9 % exact. Prints a table on a terminal, elsewhere the same columns with tabs, headings first.
"""


def evaluate(
    *,
    data_sets: Annotated[list[str], typer.Argument(metavar="DATASET", help="Data sets.", show_default=False)],
    model: ModelOption = None,
    version: VersionOption = None,
    repository: RepositoryOption = None,
    data_root: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            envvar="GLYPHLINE_DATA_ROOT",
            help="Folder that named data sets are below.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Read at most N images of each set.", show_default=False)
    ] = None,
    decoder: DecoderOption = None,
    beam_width: BeamWidthOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write report.json and sheets of the worst readings here.", show_default=False
        ),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Write the figures into the bundle's manifest and model card.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a data set.")] = False,
) -> None:
    """Measures a model: exact share and character error rate, with their uncertainty."""
    options = decoding_options(decoder, beam_width)
    options.validate()
    bundle = find_bundle(model, version, repository)
    with training_room():
        from glyphline.training.evaluate import evaluate_command

        results = evaluate_command(str(bundle.path), data_sets, data_root, options, limit, output, record)
    if as_json:
        for result in results:
            print(json.dumps(asdict(result), ensure_ascii=False))
    elif sys.stdout.isatty():
        _print_table(results)
    else:
        for line in (_HEADINGS, *map(_columns, results)):
            print("\t".join(line))


_HEADINGS = ("Data set", "Images", "Exact", "CER", "Inserted / deleted / substituted", "Straight through", "Images/s")


def _columns(result: EvaluationResult) -> tuple[str, ...]:
    (low, high), (cer_low, cer_high) = result.exact_interval, result.cer_interval
    return (
        result.data_set,
        f"{result.images:,}",
        f"{result.exact:.2%} ({low:.2%} to {high:.2%})",
        f"{result.cer:.2%} ({cer_low:.2%} to {cer_high:.2%})",
        f"{result.insertions} / {result.deletions} / {result.substitutions}",
        f"{result.coverage:.1%}",
        f"{result.images / result.seconds:,.0f}" if result.seconds else "",
    )


def _print_table(results: list[EvaluationResult]) -> None:
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    first, *others = _HEADINGS
    table = Table(Column(first, overflow="fold"), *others)
    for result in results:
        table.add_row(*(Text(value) for value in _columns(result)))
    console = Console()
    console.print(table)
    for result in results:
        lengths = ", ".join(f"{each.length}: {each.exact:.1%} of {each.images:,}" for each in result.by_length)
        console.print(Text(f"{result.data_set}, exact by length of the text: {lengths}"))
