"""Pictures with their text in a file of the same name beside each: `x.png` and `x.gt.txt`."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

from glyphline.models.image import SUFFIXES
from glyphline.training.datasets.readers.item import FilePicture, FolderListing, LabelledImage
from glyphline.training.datasets.readers.labels import read_text
from glyphline.training.errors import DataError

TEXT_SUFFIX = ".gt.txt"
_SUFFIXES = (*SUFFIXES, ".bin.png", ".nrm.png")  # the last two as ocropus names its pictures


def read_sidecar(folder: Path) -> Iterator[LabelledImage]:
    """Reads a folder, and those below it, in the order of names.

    Raises:
        DataError: If a text has no picture, more than one line, or is not UTF-8.
    """
    listing = FolderListing()
    for path in sorted(folder.rglob(f"*{TEXT_SUFFIX}")):
        stem = path.name.removesuffix(TEXT_SUFFIX)
        candidates = (path.with_name(stem + suffix) for suffix in _SUFFIXES)
        picture = next((candidate for candidate in candidates if listing.has(candidate)), None)
        if picture is None:
            raise DataError(f"{path} has no picture beside it: {stem}.png, {stem}.jpg and the like are missing")
        text = side_text(read_text(path), str(path))
        yield LabelledImage(picture.relative_to(folder).as_posix(), text, FilePicture(picture), path, 1)


def side_text(content: str, place: str) -> str:
    """Returns the one line of a text file in normal form C.

    Raises:
        DataError: If it has more than one.
    """
    lines = content.replace("\r\n", "\n").rstrip("\n").split("\n")
    if len(lines) > 1:
        raise DataError(f"{place}: a picture is one line of text; this file has {len(lines)}")
    return unicodedata.normalize("NFC", lines[0])
