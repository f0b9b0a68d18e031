"""Folders of any size in the order of their names, without holding more than a part of a listing in memory."""

from __future__ import annotations

import heapq
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO

from glyphline.service.jobs.names import is_picture

__all__ = ["walk"]

_RUN = 100_000  # names that are sorted in memory; more are sorted in runs of so many, which are then merged
_FOLDER, _FILE = "/", " "  # marks behind a name; a name has no slash


def walk(folder: str) -> Iterator[str]:
    """Yields the pictures below a folder, to any depth, sorted by name within each.

    Hidden files, drawn readings and links to folders are left out: a link could lead in circles.

    Args:
        folder: The folder.

    Raises:
        OSError: If a folder cannot be listed.
    """
    for entry in _sorted_entries(folder):
        path = os.path.join(folder, entry[:-1])
        if entry[-1] == _FOLDER:
            yield from walk(path)
        else:
            yield path


def _sorted_entries(folder: str) -> Iterator[str]:
    """Yields names with their marks in order; what does not fit into memory waits in temporary files."""
    with ExitStack() as stack:
        runs: list[IO[bytes]] = []
        names: list[str] = []
        for name in _entries(folder):
            names.append(name)
            if len(names) >= _RUN:
                runs.append(stack.enter_context(_written_run(names)))
                names = []
        names.sort(key=_order)
        if runs:
            yield from heapq.merge(*map(_read_run, runs), names, key=_order)
        else:
            yield from names


def _order(entry: str) -> str:
    return entry[:-1]


def _entries(folder: str) -> Iterator[str]:
    with os.scandir(folder) as listing:
        for entry in listing:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield entry.name + _FOLDER
            elif is_picture(entry.name) and _is_file(entry):
                yield entry.name + _FILE


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether it is a file, or a link that should have led to one and is worth an error in the output."""
    return entry.is_file() or (entry.is_symlink() and not os.path.exists(entry.path))


def _written_run(names: list[str]) -> IO[bytes]:
    names.sort(key=_order)
    run = tempfile.TemporaryFile()  # noqa: SIM115  (the caller closes it)
    for name in names:
        run.write(os.fsencode(name) + b"\0")
    run.seek(0)
    return run


def _read_run(run: IO[bytes]) -> Iterator[str]:
    rest = b""
    while block := run.read(2**16):
        *whole, rest = (rest + block).split(b"\0")
        yield from map(os.fsdecode, whole)
