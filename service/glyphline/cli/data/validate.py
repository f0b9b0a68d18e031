"""`glyphline data validate`: finds what is wrong with data sets."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glyphline.cli.data.options import (
    AlphabetOption,
    ConfigOption,
    FormatName,
    FormatOption,
    Json,
    Quiet,
    check_exists,
    count_strips,
    show_progress,
)
from glyphline.cli.exit_codes import ExitCode
from glyphline.cli.options import DataRootOption
from glyphline.cli.training_room import training_room

if TYPE_CHECKING:
    from glyphline.training.datasets.commands.validate import Finding, PartSummary, Range, Validation

EXAMPLES = """\b
Examples:
  glyphline data validate strips/
  glyphline data validate mine.toml --data-root data/
  glyphline data validate train/ test/ --config mine.toml --json > findings.json
  glyphline data validate pages/ --alphabet "abcdefghijklmnopqrstuvwxyz "

\b
A configuration stands for its real sources and its validation sets; sources that draw their strips are tried once.
Several data sets are taken for splits: no picture may be in two of them. Errors: data sets, fonts or word lists that
are missing, pictures that cannot be read, characters outside the alphabet, one picture with two texts or in two splits.
Warnings: empty labels, outer spaces, hidden characters, repeated pictures, strips too wide, labels too long for CTC on
their strip. The exit code is 1 if there are errors, else 0.
"""


def validate(
    *,
    paths: Annotated[
        list[Path], typer.Argument(metavar="DATASET|CONFIG", help="Data sets or configurations.", show_default=False)
    ],
    config: ConfigOption = None,
    alphabet: AlphabetOption = None,
    data_root: DataRootOption = Path("data"),
    format_name: FormatOption = FormatName.AUTO,
    show: Annotated[int, typer.Option(metavar="N", min=0, help="Findings of each kind that are printed.")] = 5,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Looks at every label and every pixel, and lists all that is wrong, with files and lines."""
    check_exists(*paths, config)
    with training_room():
        from glyphline.training.datasets.commands.inputs import open_inputs
        from glyphline.training.datasets.commands.validate import validate as look

        inputs = open_inputs(
            paths,
            data_root=data_root,
            format=format_name.value,
            alphabet=alphabet,
            config=config,
            missing="keep",
            drawn=True,
        )
        with show_progress(quiet, count_strips(inputs), "Checking") as progress:
            result = look(inputs, progress)
    if as_json:
        values = asdict(result) | {"counts": result.counts(), "errors": result.errors}
        print(json.dumps(values | {"warnings": len(result.findings) - result.errors}, ensure_ascii=False))
    else:
        _print(result, show, inputs.alphabet is not None)
    if result.errors:
        raise typer.Exit(ExitCode.FINDINGS)


def _print(result: Validation, show: int, has_alphabet: bool) -> None:
    """Prints the data sets, then the findings kind by kind.

    Args:
        result: What was found.
        show: Greatest number of findings of each kind.
        has_alphabet: Whether characters were compared with an alphabet.
    """
    from glyphline.training.datasets.commands.validate import KINDS

    for part in result.parts:
        print(_describe(part))
    for kind, (_, meaning) in KINDS.items():
        found = [finding for finding in result.findings if finding.kind == kind]
        if not found:
            continue
        severity = "error" if any(finding.severity == "error" for finding in found) else "warning"
        print(f"\n{severity}: {kind}, {len(found):,} times: {meaning}")
        for finding in found[:show]:
            print(f"  {_place(finding)}")
        if len(found) > show:
            print(f"  … and {len(found) - show:,} more (--show N, or --json for all)")
    if not has_alphabet:
        print("\ncharacters are not compared with an alphabet: give --config or --alphabet for that")
    print(f"\n{result.errors:,} errors, {len(result.findings) - result.errors:,} warnings")


def _place(finding: Finding) -> str:
    if not finding.file:
        return f"{finding.part}: {finding.message}"
    if finding.message.startswith(finding.file):  # a picture that cannot be read says itself where it is
        return finding.message
    return f"{finding.file}, line {finding.line}: {finding.source}: {finding.message}"


def _describe(part: PartSummary) -> str:
    shown = part.alphabet if len(part.alphabet) <= 100 else f"{part.alphabet[:100]}…"
    sizes = f"{_range(part.heights)} px high, {_range(part.normalised_widths)} px wide once normalised"
    return (
        f"{part.name}: {part.strips:,} strips, {part.readable:,} readable, {sizes if part.heights else 'no sizes'};"
        f" {part.characters:,} characters, {len(part.alphabet)} different: {shown}"
    )


def _range(values: Range | None) -> str:
    return "" if values is None else f"{values.least:,.0f} to {values.greatest:,.0f} (median {values.median:,.0f})"
