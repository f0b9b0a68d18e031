"""What the commands of `glyphline data` share: formats, options, and how they begin and show that they work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glyphline.cli.exit_codes import CommandError
from glyphline.cli.progress import open_reporter

if TYPE_CHECKING:
    from collections.abc import Callable

    from glyphline.training.datasets.commands.inputs import Inputs


class FormatName(StrEnum):
    """Formats of data sets."""

    AUTO = "auto"
    TSV = "tsv"
    CSV = "csv"
    JSONL = "jsonl"
    SIDECAR = "sidecar"
    LMDB = "lmdb"
    PAGE = "page"
    ALTO = "alto"
    WEBDATASET = "webdataset"
    PARQUET = "parquet"


class TargetName(StrEnum):
    """Formats that are written."""

    FOLDER = "folder"
    LMDB = "lmdb"
    WEBDATASET = "webdataset"
    PARQUET = "parquet"


class CutName(StrEnum):
    """How lines are cut from pages."""

    POLYGON = "polygon"
    BOX = "box"


FormatOption = Annotated[
    FormatName, typer.Option("--format", help="Format of the data sets; auto recognises it.", show_choices=True)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="CONFIG",
        help="Configuration that says what may be read and how strips are normalised, for data sets given by path.",
        show_default=False,
    ),
]
AlphabetOption = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="All characters that may be read, as '0123456789-'.", show_default=False),
]


def check_exists(*paths: Path | None) -> None:
    """Refuses paths that are not there; None is none."""
    for path in paths:
        if path is not None and not path.exists():
            raise CommandError(f"{path}: no such file or folder")


@contextmanager
def show_progress(quiet: bool, total: int | None, verb: str) -> Iterator[Callable[[int, int], None]]:
    """Shows how far it is; what it gives is told how many are done and how many of them failed."""
    with open_reporter(quiet=quiet, count=None if total is None else lambda: total, verb=verb) as reporter:
        yield reporter.update


def count_strips(inputs: Inputs) -> int:
    """Counts the strips of all data sets."""
    return sum(len(part.images) for part in inputs.parts)
