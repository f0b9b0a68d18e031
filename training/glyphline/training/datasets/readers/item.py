"""One labelled picture of a data set, which is decoded only when it is asked for."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from PIL import Image

from glyphline.models.errors import ImageError
from glyphline.models.image import ImageLimits, read_header, read_image
from glyphline.training.datasets.samples import Grey
from glyphline.training.errors import DataError


class Picture(Protocol):
    """A picture that lies somewhere. It can be pickled, so that processes which make strips can be given it."""

    def content(self) -> bytes:
        """Returns an image file's bytes.

        Raises:
            DataError: If it cannot be read from where it lies.
        """
        ...

    def load(self) -> Grey:
        """Returns its pixels `(height, width)`.

        Raises:
            DataError: If it cannot be read from where it lies.
            ImageError: If it is no image that can be decoded.
        """
        ...


class EncodedPicture:
    """A picture that lies somewhere as the bytes of an image file."""

    __slots__ = ()

    def content(self) -> bytes:
        """Returns the file's bytes."""
        raise NotImplementedError

    def load(self) -> Grey:
        """Decodes the bytes as serving does."""
        return read_image(self.content(), ImageLimits()).pixels


@dataclass(frozen=True, slots=True)
class FilePicture(EncodedPicture):
    """A picture in a file of its own."""

    path: Path

    def content(self) -> bytes:
        """Returns the file's bytes."""
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise DataError(f"{self.path}: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class LabelledImage:
    """A picture and its text.

    Attributes:
        source: Its name, relative to the data set: what selections and folds look at, and reports show.
        text: Its true text, in Unicode normal form C.
        picture: Where its pixels are.
        file: The file in which its text stands.
        line: The line there, from 1; where the file has no lines, the number of the record.
    """

    source: str
    text: str
    picture: Picture
    file: Path
    line: int

    @property
    def place(self) -> str:
        """Where its text stands, for messages."""
        return f"{self.file}, line {self.line}"

    def load(self) -> Grey:
        """Decodes the picture.

        Returns:
            Grey levels `(height, width)`.

        Raises:
            DataError: If it is missing or no picture that can be read.
        """
        try:
            return self.picture.load()
        except ImageError as error:
            raise DataError(f"{self.place}: {self.source}: {error}") from error

    def size(self) -> tuple[int, int]:
        """Returns the picture's width and height; where it is a file of its own, without decoding its pixels.

        Raises:
            DataError: If it is missing or no picture.
        """
        try:
            if isinstance(self.picture, EncodedPicture):
                header = read_header(self.picture.content(), ImageLimits())
                return header.width, header.height
            height, width = self.picture.load().shape
        except ImageError as error:
            raise DataError(f"{self.place}: {self.source}: {error}") from error
        return width, height

    def content(self) -> bytes:
        """Returns the picture as the bytes of an image file: those of the data set, or PNG where it is cut from a page.

        Raises:
            DataError: If it is missing or cannot be read.
        """
        try:
            return self.picture.content()
        except ImageError as error:
            raise DataError(f"{self.place}: {self.source}: {error}") from error


def encode_png(pixels: Grey, level: int = 6) -> bytes:
    """Returns pixels as the bytes of a PNG file, which loses nothing; level 1 is quick and a few per cent larger."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", compress_level=level)
    return buffer.getvalue()


class FolderListing:
    """Tells whether files exist, with one look at each folder and not one at each file."""

    def __init__(self) -> None:
        self._names = lru_cache(maxsize=4096)(_names_in)

    def has(self, path: Path) -> bool:
        """Tells whether a file exists."""
        return path.name in self._names(path.parent)


def _names_in(folder: Path) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return frozenset()


def missing_files(images: Iterable[LabelledImage]) -> Iterator[tuple[Path, LabelledImage]]:
    """Yields the pictures whose files do not exist, each with the path where its file should be."""
    listing = FolderListing()
    for image in images:
        if isinstance(image.picture, FilePicture) and not listing.has(image.picture.path):
            yield image.picture.path, image


def tell_missing(missing: Sequence[tuple[Path, LabelledImage]]) -> str:
    """Says which files are missing: the first few with their places, and how many more."""
    named = "; ".join(f"{path} ({image.place})" for path, image in missing[:5])
    more = f"; and {len(missing) - 5:,} more" if len(missing) > 5 else ""
    return f"pictures are named in label files but missing: {named}{more}"


def check_files(images: Iterable[LabelledImage]) -> None:
    """Makes sure that the files of pictures exist, before hours of training find out.

    Raises:
        DataError: If some do not; how many, and the first few with their places.
    """
    missing = list(missing_files(images))
    if missing:
        raise DataError(tell_missing(missing))
