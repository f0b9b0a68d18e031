"""Which images a job reads: files, folders and glob patterns, found while the job runs."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from glyphline.models.errors import GlyphlineError

# What a folder is searched for. A file that is named, or that a pattern matches, is read whatever its name.
IMAGE_SUFFIXES = frozenset(
    {".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm", ".tif", ".tiff", ".webp"}
)


class InputError(GlyphlineError):
    """A path names nothing that can be read."""


def find_images(paths: Iterable[str]) -> Iterator[str]:
    """Yields the images that `paths` name, in the order given and sorted inside folders and patterns.

    Folders are searched to any depth; hidden files and links to folders are left out (a link could lead in circles).
    A path that exists is taken as it is, even when it holds `*`, `?` or `[`. An image that is named twice comes twice.
    At no time is more than one folder's listing held in memory.

    Args:
        paths: Files, folders and patterns (`**` matches any depth).

    Yields:
        Paths of files, as they were reached: relative ones stay relative.

    Raises:
        InputError: If a path does not exist, or a pattern matches nothing.
    """
    for path in paths:
        for match in _matches(path):
            if os.path.isdir(match):
                yield from _walk(match)
            else:
                yield match


def check_inputs(paths: Sequence[str]) -> None:
    """Raises InputError now for what `find_images` would only find out in the middle of the job."""
    if not paths:
        raise InputError("no input: name at least one image, folder or pattern")
    for path in paths:
        next(iter(_matches(path)))


def paths_from_list(stream: BinaryIO) -> Iterator[str]:
    """Yields one path a line of `stream`; blank lines are skipped. Paths are neither searched nor matched."""
    for line in stream:
        path = os.fsdecode(line.rstrip(b"\r\n"))  # names of files are bytes, and need not be UTF-8
        if path.strip():
            yield path


def _matches(path: str) -> Iterator[str]:
    if os.path.lexists(path):
        yield path
        return
    if not glob.has_magic(path):
        raise InputError(f"{path}: no such file or folder")
    matches = sorted(glob.glob(path, recursive=True))
    if not matches:
        raise InputError(f"{path}: the pattern matches nothing")
    yield from matches


def _walk(folder: str) -> Iterator[str]:
    with os.scandir(folder) as listing:
        entries = sorted((entry for entry in listing if not entry.name.startswith(".")), key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path)
        elif os.path.splitext(entry.name)[1].lower() in IMAGE_SUFFIXES and _is_file(entry):
            yield entry.path


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether it is a file, or a link that should have led to one and is worth an error in the output."""
    return entry.is_file() or (entry.is_symlink() and not os.path.exists(entry.path))
