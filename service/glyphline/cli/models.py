"""`glyphline models`: which models there are, and what is known of each."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glyphline.cli.options import RepositoryOption, VersionOption
from glyphline.cli.selection import find_bundle, open_repository

if TYPE_CHECKING:
    from pathlib import Path

    from glyphline.models.bundle import Bundle

EXAMPLES = """\b
Examples:
  glyphline models                                list the models that come with Glyphline
  glyphline models digits                         show the model card of one
  glyphline models --model-repository models/     list another folder
  glyphline models --json                         the same for programs
"""


def models(
    *,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME|FOLDER]", help="Show the model card of this model.", show_default=False),
    ] = None,
    version: VersionOption = None,
    repository: RepositoryOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one object a model.")] = False,
) -> None:
    """Lists models, or shows the card of one."""
    if name is None:
        _print_list(_all_bundles(repository), as_json)
        return
    bundle = find_bundle(name, version, repository)
    if as_json:
        print(json.dumps(_describe(bundle), ensure_ascii=False))
    else:
        _print_card(bundle)


def _all_bundles(root: Path | None) -> list[Bundle]:
    repository = open_repository(root)
    return [repository.load(name, version) for name in repository.names() for version in repository.versions(name)]


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
    }


def _size(bundle: Bundle) -> int:
    return sum(bundle.file(name).stat().st_size for name in bundle.manifest.files)


def _print_list(bundles: list[Bundle], as_json: bool) -> None:
    if as_json:
        for bundle in bundles:
            print(json.dumps(_describe(bundle), ensure_ascii=False))
        return
    if not sys.stdout.isatty():
        for bundle in bundles:
            print("\t".join(str(value) for value in _columns(bundle)))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("Name", "Version", "Head", "Size", "Alphabet", "Licence", "Exact (data set, n)")
    for bundle in bundles:
        table.add_row(*(Text(str(value)) for value in _columns(bundle)))
    Console().print(table)


def _columns(bundle: Bundle) -> tuple[str | int, ...]:
    manifest = bundle.manifest
    figures = "; ".join(f"{each.exact:.1%} ({each.data_set}, {each.images:,})" for each in manifest.evaluation)
    alphabet = "".join(manifest.alphabet).replace(" ", "␣")
    shown = alphabet if len(alphabet) <= 24 else f"{alphabet[:20]}… ({len(manifest.alphabet)})"
    size = f"{_size(bundle) / 1e6:.1f} MB"
    return manifest.name, manifest.version, manifest.head, size, shown, manifest.licence, figures or "not measured"


def _print_card(bundle: Bundle) -> None:
    from glyphline.models.bundle import MODEL_CARD_NAME

    card = bundle.file(MODEL_CARD_NAME).read_text(encoding="utf-8")
    if not sys.stdout.isatty():
        print(card, end="" if card.endswith("\n") else "\n")
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(card))
