"""TIFF files with several pages: each page is a picture of its own."""

from __future__ import annotations

import os
import struct
from typing import BinaryIO

from glyphline.service.jobs.storage import open_binary

__all__ = ["TIFF_SUFFIXES", "pages_of"]

TIFF_SUFFIXES = frozenset({".tif", ".tiff"})
_MOST_PAGES = 100_000
_SUBFILE_TYPE = 254
_REDUCED = 1  # a smaller copy of another page, as viewers want it


def pages_of(path: str) -> list[int]:
    """Returns the numbers of a file's pages, from 1, its smaller copies left out; nothing of a page is decoded.

    A file that is damaged, or is none of TIFF, has one page: whoever reads that will say what is wrong.
    """
    try:
        with open_binary(path) as stream:
            return _Directories(stream).pages() or [1]
    except (OSError, struct.error, ValueError):
        return [1]


class _Directories:
    """The chain of directories of a TIFF or BigTIFF file, of which each describes one page."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._size = os.fstat(stream.fileno()).st_size
        start = stream.read(16)
        self._order = {b"II": "<", b"MM": ">"}[start[:2]] if start[:2] in (b"II", b"MM") else ""
        if not self._order:
            raise ValueError("not TIFF")
        (version,) = struct.unpack_from(f"{self._order}H", start, 2)
        self._big = version == 43
        self._first = struct.unpack_from(
            f"{self._order}Q" if self._big else f"{self._order}I", start, 8 if self._big else 4
        )[0]

    def pages(self) -> list[int]:
        numbers: list[int] = []
        seen: set[int] = set()
        offset, number = self._first, 0
        while 0 < offset < self._size and offset not in seen and number < _MOST_PAGES:
            seen.add(offset)
            number += 1
            reduced, offset = self._directory(offset)
            if not reduced:
                numbers.append(number)
        return numbers

    def _directory(self, offset: int) -> tuple[bool, int]:
        """Returns whether a page is a smaller copy, and where the next one's directory is."""
        count_format, entry_size, next_format = ("Q", 20, "Q") if self._big else ("H", 12, "I")
        self._stream.seek(offset)
        (count,) = self._unpack(count_format)
        entries = self._stream.read(count * entry_size)
        (following,) = self._unpack(next_format)
        value_at = 12 if self._big else 8
        for start in range(0, len(entries) - entry_size + 1, entry_size):
            if struct.unpack_from(f"{self._order}H", entries, start)[0] == _SUBFILE_TYPE:
                value = struct.unpack_from(f"{self._order}I", entries, start + value_at)[0]
                return bool(value & _REDUCED), following
        return False, following

    def _unpack(self, kind: str) -> tuple[int]:
        wanted = f"{self._order}{kind}"
        found: tuple[int] = struct.unpack(wanted, self._stream.read(struct.calcsize(wanted)))
        return found
