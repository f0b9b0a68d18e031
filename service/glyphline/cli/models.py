"""`glyphline models`: which models there are, and what is known of each."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glyphline.cli.exit_codes import ExitCode
from glyphline.cli.group import tell
from glyphline.cli.options import RepositoryOption, VersionOption
from glyphline.cli.selection import find_bundle, open_repository

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from glyphline.models.bundle import Bundle

EXAMPLES = """\b
Examples:
  glyphline models                                list the models that come with Glyphline
  glyphline models digits                         show the model card of one
  glyphline models --model-repository models/     list another folder
  glyphline models --json                         the same for programs

\b
Models that are damaged are named on standard error ("error" says why with --json); all others are listed all the same,
and the exit code is 4.
"""

_LONGEST_WHOLE_NAME = 32  # characters that leave room for the other columns on 80


def models(
    *,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME|FOLDER", help="Show the model card of this model.", show_default=False),
    ] = None,
    version: VersionOption = None,
    repository: RepositoryOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one object a model.")] = False,
) -> None:
    """Lists models, or shows the card of one."""
    if name is None:
        bundles, damaged = all_bundles(repository)
        _print_list(bundles, damaged, as_json)
        for each in open_repository(repository).passed_over():
            tell(each, "models")
        if damaged:
            raise typer.Exit(ExitCode.MODEL)
        return
    bundle = find_bundle(name, version, repository)
    if as_json:
        print(json.dumps(_describe(bundle), ensure_ascii=False))
    else:
        _print_card(bundle)


@dataclass(frozen=True, slots=True)
class Damaged:
    """A bundle that cannot be loaded."""

    name: str
    version: int
    path: Path
    error: str


def all_bundles(root: Path | None) -> tuple[list[Bundle], list[Damaged]]:
    """Opens every bundle of a repository; those that are damaged come apart, each with the reason."""
    from glyphline.models.errors import BundleError

    repository = open_repository(root)
    bundles, damaged = [], []
    for name in repository.names():
        for version in repository.versions(name):
            try:
                bundles.append(repository.load(name, version))
            except (BundleError, OSError) as error:
                damaged.append(Damaged(name, version, repository.resolve(name, version), str(error)))
    return bundles, damaged


def _describe(bundle: Bundle) -> dict[str, Any]:
    manifest = bundle.manifest
    return {
        "name": manifest.name,
        "version": manifest.version,
        "head": manifest.head,
        "task": manifest.task,
        "bytes": _size(bundle),
        "alphabet": manifest.alphabet,
        "height": manifest.image.height,
        "max_output_length": manifest.max_output_length,
        "decoder": manifest.decoder.model_dump(mode="json"),
        "licence": manifest.licence,
        "data": [source.model_dump(mode="json") for source in manifest.data],
        "evaluation": [evaluation.model_dump(mode="json") for evaluation in manifest.evaluation],
        "created": manifest.created,
        "git_commit": manifest.git_commit,
        "path": str(bundle.path),
        "error": None,
    }


def _size(bundle: Bundle) -> int:
    return sum(bundle.file(name).stat().st_size for name in bundle.manifest.files)


def _print_list(bundles: list[Bundle], damaged: list[Damaged], as_json: bool) -> None:
    """Prints the bundles to the standard output, and what is wrong with the others to the standard error stream."""
    if as_json:
        for values in (*map(_describe, bundles), *map(asdict, damaged)):
            print(json.dumps(values, ensure_ascii=False, default=str))
    elif sys.stdout.isatty():
        from rich.console import Console

        Console().print(model_table([tuple(map(str, _columns(bundle))) for bundle in bundles]))
    else:
        for bundle in bundles:
            print("\t".join(str(value) for value in _columns(bundle)))
    for each in damaged:
        tell(f"{each.name} {each.version} is damaged: {each.error}", "models")


def model_table(rows: Sequence[tuple[str, ...]]) -> Table:
    """Builds the table of models; however narrow the terminal, names are whole."""
    from rich.table import Column, Table
    from rich.text import Text

    whole = all(len(row[0]) <= _LONGEST_WHOLE_NAME for row in rows)  # longer ones are folded
    table = Table(
        Column("Name", no_wrap=whole, overflow="fold"),
        *(Column(heading, no_wrap=True) for heading in ("Version", "Head", "Size")),
        *(Column(heading, overflow="fold") for heading in ("Alphabet", "Licence", "Exact (data set, n)")),
    )
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _columns(bundle: Bundle) -> tuple[str | int, ...]:
    manifest = bundle.manifest
    figures = "; ".join(f"{each.exact:.1%} ({each.data_set}, {each.images:,})" for each in manifest.evaluation)
    alphabet = "".join(manifest.alphabet).replace(" ", "␣")
    shown = alphabet if len(alphabet) <= 24 else f"{alphabet[:20]}… ({len(manifest.alphabet)})"
    size, licence = f"{_size(bundle) / 1e6:.1f} MB", manifest.licence or "not stated"
    return manifest.name, manifest.version, manifest.head, size, shown, licence, figures or "not measured"


def _print_card(bundle: Bundle) -> None:
    from glyphline.models.manifest import MODEL_CARD_NAME

    card = bundle.file(MODEL_CARD_NAME).read_text(encoding="utf-8")
    if not sys.stdout.isatty():
        print(card, end="" if card.endswith("\n") else "\n")
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(card))
