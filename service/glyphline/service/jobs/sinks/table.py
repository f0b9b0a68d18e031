"""The flat row that tables hold: one value a column, the same columns for every row."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from glyphline.service.jobs.disk import Disk

__all__ = ["COLUMNS", "flat", "read_rows", "write_csv"]

COLUMNS = (
    "id",
    "source",
    "text",
    "confidence",
    "truncated",
    "error_code",
    "error_message",
    "reference",
    "place",
    "crop",
    "line",
    "tokens",
    "alternatives",
    "model",
    "version",
    "sha256",
    "decoder",
)
_BLOCK = 2**20  # bytes that are written at once
_NESTED = ("place", "crop", "line")


def read_rows(segment: Path) -> Iterator[dict[str, Any]]:
    """Yields the rows of a file of JSON lines."""
    with segment.open("rb") as lines:
        for line in lines:
            yield json.loads(line)


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Makes a row's columns: the error becomes two, `place`, `crop` and `line` become JSON."""
    error = row["error"] or {}
    values = {name: row.get(name) for name in COLUMNS}
    values |= {name: _json(row[name]) for name in _NESTED if name in row}
    return values | {"error_code": error.get("code"), "error_message": error.get("message")}


def write_csv(segment: Path, target: Path, disk: Disk) -> None:
    """Writes rows as CSV with a heading; characters and alternatives become JSON."""
    with disk.whole(target) as stream:
        block = io.StringIO(newline="")
        writer = csv.writer(block, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in read_rows(segment):
            values = flat(row)
            for name in ("tokens", "alternatives"):
                values[name] = _json(values[name])
            writer.writerow([_cell(values[name]) for name in COLUMNS])
            if block.tell() > _BLOCK:
                disk.write(stream, block.getvalue().encode())
                block.seek(0)
                block.truncate()
        disk.write(stream, block.getvalue().encode())


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _cell(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value
