"""PAGE and ALTO files with the texts that were read filled in."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from glyphline.models.errors import PageError
from glyphline.service.jobs.disk import Disk
from glyphline.service.jobs.errors import JobError
from glyphline.service.jobs.filling import Filling, fill_in
from glyphline.service.jobs.sinks.table import read_rows
from glyphline.service.jobs.storage import is_uri, open_binary

__all__ = ["write_filled"]


def write_filled(segment: Path, folder: Path, disk: Disk) -> None:
    """Writes each file of whose lines there are rows, below `folder` under the path that it was given by.

    A line that could not be read keeps the text that it had.

    Args:
        segment: The rows; those of one file follow each other.
        folder: Where to write.
        disk: How to write.

    Raises:
        JobError: If a file is gone or has changed since its lines were read.
    """
    lines = (row for row in read_rows(segment) if "line" in row)
    for file, rows in itertools.groupby(lines, key=_file):
        target = folder / _below(file)
        if not target.parent.is_dir():
            disk.make_folder(target.parent)
        try:
            with open_binary(file) as stream:
                filled = fill_in(stream.read(), file, _texts(rows))
        except OSError as error:
            raise JobError(f"{file}: {error.strerror or error}; its texts cannot be filled in") from error
        except PageError as error:
            raise JobError(f"{error}; its texts cannot be filled in") from error
        disk.write_whole(target, filled)


def _file(row: dict[str, Any]) -> str:
    return str(row["line"]["file"])


def _texts(rows: Iterable[dict[str, Any]]) -> dict[int, Filling]:
    return {
        int(row["line"]["number"]): Filling(row["text"], row["confidence"]) for row in rows if row["text"] is not None
    }


def _below(file: str) -> str:
    """Turns a path or URI into a path below a folder, which it cannot leave."""
    if is_uri(file):
        file = file.partition("://")[2]
    parts = os.path.normpath(file).replace("\\", "/").split("/")
    return "/".join(part for part in parts if part not in ("", ".", "..") and not part.endswith(":"))
