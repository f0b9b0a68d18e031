"""Reads a job's rows back, in whatever format they were written and however far the job has come."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glyphline.models.image import ImageLimits
from glyphline.service.jobs.beginning import SUMMARY, stored_settings
from glyphline.service.jobs.errors import InputError, OutputError
from glyphline.service.jobs.sinks import Layout, guess_format
from glyphline.service.jobs.sinks.parquet import check_parquet
from glyphline.service.jobs.storage import is_uri

__all__ = ["JobOutput", "open_output"]

Row = Mapping[str, Any]

_NEEDED = frozenset({"id", "text", "confidence", "error"})
_JSON_COLUMNS = ("place", "crop", "line", "tokens", "alternatives")
_GROUP = 1_000  # rows of Parquet that are held at once


@dataclass(frozen=True, slots=True)
class JobOutput:
    """What a job has written.

    Attributes:
        name: As it was given.
        files: Files of rows in their order.
        settings: Those that the job keeps of itself; empty where its folder is gone.
        finished: Whether all rows are there.
        formats: Formats of files whose names end otherwise.
    """

    name: str
    files: tuple[Path, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    finished: bool = True
    formats: Mapping[Path, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Row]:
        """Reads the rows, one after another.

        Raises:
            InputError: If a file holds something else.
            OSError: If one cannot be read.
        """
        for path in self.files:
            kind = self.formats.get(path, path.suffix.lower().lstrip("."))
            yield from _READERS.get(kind, _read_jsonl)(path)

    @property
    def limits(self) -> ImageLimits:
        """The largest picture that the job took."""
        usual = ImageLimits()
        return ImageLimits(
            self.settings.get("max_bytes", usual.max_bytes), self.settings.get("max_pixels", usual.max_pixels)
        )

    def located(self, row: Row) -> Row:
        """Returns the row with its source as it is found from here: it was noted in the folder that the job ran in."""
        source, folder = row.get("source"), self.settings.get("folder")
        if not isinstance(source, str) or not isinstance(folder, str) or is_uri(source):
            return row
        return {**row, "source": os.path.join(folder, source)}


def open_output(name: str) -> JobOutput:
    """Finds the rows of a job.

    Args:
        name: Its output, a file or a folder; that of a job that is not finished need not be there yet.

    Raises:
        InputError: If there is no such output, or it holds no row so far.
    """
    chosen, folder = guess_format(name)
    layout = Layout.of(name, chosen, folder=folder)
    try:
        settings = (stored_settings(layout) or {}).get("settings", {})
    except OutputError as error:
        raise InputError(str(error)) from error
    if (stated := settings.get("format")) in ("jsonl", "csv", "parquet", "xml"):
        layout = Layout(layout.output, stated, folder=layout.folder)
    files = list(_published(layout))
    waiting = sorted(layout.job.glob("rows-*.jsonl"))
    parts = {layout.published(int(path.stem.removeprefix("rows-"))): path for path in waiting}
    files += [path for target, path in parts.items() if target not in files]  # else it is published already
    if not files:
        if settings:
            raise InputError(f"{name}: the job has no rows yet")
        raise InputError(f"{name}: no output of `glyphline transcribe` is there")
    formats = {} if layout.folder else {layout.output: layout.format}
    if any(formats.get(path, path.suffix.lstrip(".")) == "parquet" for path in files):
        try:
            check_parquet()
        except OutputError as error:
            raise InputError(str(error)) from error
    return JobOutput(name, tuple(files), settings, not settings or (layout.job / SUMMARY).exists(), formats)


def _published(layout: Layout) -> Iterator[Path]:
    if not layout.folder:
        if layout.output.is_file():
            yield layout.output
        return
    for path in layout.leftovers():
        if layout.is_ours(path) and path.suffix != ".new" and path.is_file():
            yield path


def _checked(row: object, path: Path, number: int) -> Row:
    if not isinstance(row, dict) or not row.keys() >= _NEEDED or not isinstance(row["id"], str):
        raise InputError(
            f"{path}, row {number}: no row of `glyphline transcribe`, which has an id, a text and an error"
        )
    return row


def _read_jsonl(path: Path) -> Iterator[Row]:
    """Reads lines of JSON. A last line that is not whole is left out: the job may be at work on it."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
            except ValueError as error:
                if not line.endswith(b"\n"):
                    return
                raise InputError(f"{path}, line {number}: not JSON") from error
            yield _checked(row, path, number)


def _read_csv(path: Path) -> Iterator[Row]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # the characters of a long line are one cell
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            for number, cells in enumerate(csv.DictReader(stream), 1):
                values = {name: value for name, value in cells.items() if value != ""}  # it knows no null
                yield _checked(_unflat(values, path, number), path, number)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a table that can be read: {error}") from error


def _unflat(values: Mapping[str, Any], path: Path, number: int) -> dict[str, Any]:
    """Makes a row of its columns; without an error there is a text, which may be empty."""
    row = {name: value for name, value in values.items() if value is not None}
    try:
        row |= {name: json.loads(row[name]) for name in _JSON_COLUMNS if isinstance(row.get(name), str)}
        code = row.pop("error_code", None)
        message = row.pop("error_message", "")
        row["error"] = None if code is None else {"code": code, "message": message}
        row["text"] = None if code is not None else row.get("text", "")
        row["confidence"] = float(row["confidence"]) if "confidence" in row else None
        row["version"] = int(row["version"]) if "version" in row else None
    except ValueError as error:
        raise InputError(f"{path}, row {number}: no row of `glyphline transcribe`: {error}") from error
    return row


def _read_parquet(path: Path) -> Iterator[Row]:
    from pyarrow import ArrowException, parquet  # noqa: PLC0415  (of the extra `parquet`; checked before)

    number = 0
    try:
        with path.open("rb") as stream, parquet.ParquetFile(stream) as file:
            for batch in file.iter_batches(_GROUP):
                for values in batch.to_pylist():
                    number += 1
                    yield _checked(_unflat(values, path, number), path, number)
    except ArrowException as error:
        raise InputError(f"{path}: not Parquet that can be read: {error}") from error


_READERS = {"csv": _read_csv, "parquet": _read_parquet}
