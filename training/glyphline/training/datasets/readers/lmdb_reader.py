"""LMDB in the layout of the deep-text-recognition-benchmark: `num-samples`, `image-%09d` and `label-%09d`, from 1."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glyphline.training.datasets.readers.item import EncodedPicture, LabelledImage
from glyphline.training.errors import DataError


@dataclass(frozen=True, slots=True)
class LmdbPicture(EncodedPicture):
    """A picture in an LMDB."""

    folder: Path
    number: int

    def content(self) -> bytes:
        """Returns the image file's bytes."""
        with open_lmdb(self.folder).begin() as transaction:
            value = transaction.get(b"image-%09d" % self.number)
        if value is None:
            raise DataError(f"{self.folder} has no image-{self.number:09d}")
        return bytes(value)


_OPEN: dict[Path, tuple[tuple[int, int, int], Any]] = {}
"""What this process has open, with the state of the file and the process that it was opened in."""


def open_lmdb(folder: Path) -> Any:  # noqa: ANN401  (lmdb has no types)
    """Opens an LMDB to read: once in a process, as LMDB demands, and anew in a forked child or when it has changed.

    Raises:
        DataError: If it is none.
    """
    import lmdb  # noqa: PLC0415  (of the extra `train`, and only this format needs it)

    try:
        state = (folder / "data.mdb" if folder.is_dir() else folder).stat()
    except OSError as error:
        raise DataError(f"{folder} is no LMDB: {error.strerror}") from error
    signature = (os.getpid(), state.st_mtime_ns, state.st_size)
    if folder in _OPEN:
        known, environment = _OPEN[folder]
        if known == signature:
            return environment
        if known[0] == signature[0]:
            environment.close()
    try:
        environment = lmdb.open(
            str(folder), subdir=folder.is_dir(), readonly=True, lock=False, readahead=False, meminit=False
        )
    except lmdb.Error as error:
        raise DataError(f"{folder} is no LMDB: {error}") from error
    _OPEN[folder] = (signature, environment)
    return environment


def read_lmdb(folder: Path) -> Iterator[LabelledImage]:
    """Reads the labels of an LMDB; pictures are read when they are asked for.

    Args:
        folder: Folder with `data.mdb`, or an LMDB that is a single file.

    Raises:
        DataError: If it is no LMDB, or not of this layout.
    """
    with open_lmdb(folder).begin() as transaction:
        stated = transaction.get(b"num-samples")
        if stated is None:
            raise DataError(f"{folder} has no key num-samples, as the deep-text-recognition-benchmark's LMDBs have")
        try:
            count = int(bytes(stated))
        except ValueError:
            raise DataError(f"{folder}: num-samples is no number: {bytes(stated)!r}") from None
        for number in range(1, count + 1):
            label = transaction.get(b"label-%09d" % number)
            if label is None:
                raise DataError(f"{folder} states {count} samples, but has no label-{number:09d}")
            try:
                text = unicodedata.normalize("NFC", bytes(label).decode("utf-8"))
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{folder}: label-{number:09d} is not UTF-8: {error.reason} at byte {error.start}"
                ) from error
            yield LabelledImage(f"{folder.name}#{number:09d}", text, LmdbPicture(folder, number), folder, number)
