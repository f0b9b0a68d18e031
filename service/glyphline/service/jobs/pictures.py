"""Where a picture lies and how it is fetched from there, in whatever process that happens.

A picture is small and can be sent to another process; its bytes are read only there. What a row says of it (`place`,
`crop`) is enough to make it again: see `picture_of`.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, cast

from PIL import TiffImagePlugin

from glyphline.models.cut import Points, cut_polygon, scaled
from glyphline.models.errors import (
    GlyphlineError,
    ImageError,
    ImageTooLargeError,
    UndecodableImageError,
)
from glyphline.models.image import GreyImage, ImageLimits, read_image, to_grey
from glyphline.service.jobs.errors import InputError
from glyphline.service.jobs.files import read_content
from glyphline.service.jobs.rows import RowError
from glyphline.service.jobs.storage import check_allowed, is_uri, open_binary

__all__ = [
    "Content",
    "CutPicture",
    "FilePicture",
    "ParquetPicture",
    "Picture",
    "RefusedPicture",
    "TarPicture",
    "TiffPicture",
    "ZipPicture",
    "fetch",
    "page_limits",
    "picture_of",
]

Content = bytes | GreyImage | RowError

_PAGE_BYTES = 256 * 2**20
_PAGE_PIXELS = 200_000_000
_ZIP_HEADER = struct.Struct("<4s22xHH")
_STORED, _DEFLATED = 0, 8


def page_limits(limits: ImageLimits) -> ImageLimits:
    """Returns the limits of pages, from which strips are cut: pages are larger."""
    return ImageLimits(max(limits.max_bytes, _PAGE_BYTES), max(limits.max_pixels, _PAGE_PIXELS))


class Picture(Protocol):
    """A picture that lies somewhere."""

    @property
    def source(self) -> str:
        """Path or URI of the file that it lies in."""
        ...

    def place(self) -> dict[str, Any]:
        """Says where in that file; empty where it is the whole file."""
        ...

    def read(self, limits: ImageLimits) -> Content:
        """Fetches it.

        Raises:
            OSError: If its file cannot be read.
            ImageError: If there is no such picture in it.
        """
        ...


def fetch(picture: Picture, limits: ImageLimits) -> Content:
    """Fetches a picture; what is wrong with it is returned.

    Raises:
        InputError: If what would read it is not installed: that concerns every picture of its kind.
    """
    try:
        return picture.read(limits)
    except InputError:
        raise
    except (GlyphlineError, OSError) as error:
        return RowError.of(error)
    except Exception as error:  # whatever a library makes of a damaged file or of a storage that does not answer
        return RowError("unreadable_file", f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class FilePicture:
    """A picture in a file of its own."""

    source: str

    def place(self) -> dict[str, Any]:
        """Says that it is the whole file."""
        return {}

    def read(self, limits: ImageLimits) -> Content:
        """Reads the file."""
        return read_content(self.source, limits)


@dataclass(frozen=True, slots=True)
class RefusedPicture:
    """A picture that a list names and that may not be read, with the reason."""

    source: str
    code: str
    message: str

    def place(self) -> dict[str, Any]:
        """Says nothing."""
        return {}

    def read(self, _: ImageLimits) -> Content:
        """Gives the reason."""
        return RowError(self.code, self.message)


@dataclass(frozen=True, slots=True)
class TarPicture:
    """A picture within a tar file that is not compressed: `size` bytes from `start` on."""

    source: str
    member: str
    start: int
    size: int

    def place(self) -> dict[str, Any]:
        """Names the member, and where its bytes are."""
        return {"member": self.member, "start": self.start, "size": self.size}

    def read(self, limits: ImageLimits) -> Content:
        """Reads its bytes and no others."""
        _check_size(self.size, limits)
        content = _read_at(self.source, self.start, self.size)
        if len(content) < self.size:
            raise UndecodableImageError(f"{self.source} is cut short within {self.member}")
        return content


@dataclass(frozen=True, slots=True)
class ZipPicture:
    """A picture within a zip file.

    Attributes:
        source: The zip file.
        member: Its name there.
        start: Where its header begins.
        packed: Bytes as they are stored.
        size: Bytes of the picture.
        method: How they are stored.
        check: Their CRC-32.
    """

    source: str
    member: str
    start: int
    packed: int
    size: int
    method: int
    check: int

    def place(self) -> dict[str, Any]:
        """Names the member, and what its reader has to know."""
        numbers = {"start": self.start, "packed": self.packed, "size": self.size}
        return {"member": self.member} | numbers | {"method": self.method, "check": self.check}

    def read(self, limits: ImageLimits) -> Content:
        """Reads and unpacks it; never more than its stated size, so that no bomb goes off."""
        _check_size(self.size, limits)
        if self.method not in (_STORED, _DEFLATED):
            raise UndecodableImageError(f"{self.member} is compressed by method {self.method}; only deflate is read")
        header = _read_at(self.source, self.start, _ZIP_HEADER.size)
        if len(header) < _ZIP_HEADER.size or header[:4] != b"PK\x03\x04":
            raise UndecodableImageError(f"{self.source} is damaged: {self.member} does not begin where it should")
        _, name, extra = _ZIP_HEADER.unpack(header)
        content = _read_at(self.source, self.start + _ZIP_HEADER.size + name + extra, self.packed)
        try:
            if self.method == _DEFLATED:
                content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, self.size + 1)
        except zlib.error as error:
            raise UndecodableImageError(f"{self.source} is damaged within {self.member}: {error}") from error
        if len(content) != self.size or zlib.crc32(content) != self.check:
            raise UndecodableImageError(f"{self.source} is damaged within {self.member}: its checksum differs")
        return content


@dataclass(frozen=True, slots=True)
class TiffPicture:
    """One page of a TIFF file, counted from 1."""

    source: str
    page: int

    def place(self) -> dict[str, Any]:
        """Names the page."""
        return {"page": self.page}

    def read(self, limits: ImageLimits) -> Content:
        """Decodes the page; the file's others are not touched."""
        with open_binary(self.source) as stream:
            try:
                image = TiffImagePlugin.TiffImageFile(stream, self.source)
                image.seek(self.page - 1)
                width, height = image.size
                if width * height > limits.max_pixels:
                    raise ImageTooLargeError(
                        f"page {self.page} has {width} x {height} = {width * height} pixels;"
                        f" the limit is {limits.max_pixels}"
                    )
                image.load()
                return to_grey(image)
            except (ImageError, MemoryError):
                raise
            except Exception as error:  # decoders raise nearly anything on damaged bytes
                raise UndecodableImageError(f"page {self.page} is damaged or missing: {error}") from error


@dataclass(frozen=True, slots=True)
class ParquetPicture:
    """A picture in one cell of a Parquet file.

    Attributes:
        source: The file.
        row: Number of its row in the file, from 1.
        column: Name of its column: of bytes, or of structs with `bytes` and `path` as Hugging Face writes them.
        group: Row group, from 0.
        index: Its row within the group, from 0.
    """

    source: str
    row: int
    column: str
    group: int
    index: int

    def place(self) -> dict[str, Any]:
        """Names row and column, and the group."""
        return {"row": self.row, "column": self.column, "group": self.group, "index": self.index}

    def read(self, limits: ImageLimits) -> Content:
        """Takes the bytes from the row group, of which a process keeps the last."""
        value = _parquet_group(self.source, self.column, self.group)[self.index].as_py()
        if isinstance(value, dict):
            value = value.get("bytes")
        if value is None:
            raise UndecodableImageError(f"row {self.row}: column {self.column!r} has no picture")
        _check_size(len(value), limits)
        return bytes(value)


@dataclass(frozen=True, slots=True)
class CutPicture:
    """A strip cut from a picture.

    Attributes:
        picture: The page.
        points: Corners of the strip; with two, the box between them.
        size: Width and height of the page that the corners were drawn on; (0, 0) for the page as it is.
    """

    picture: Picture
    points: Points
    size: tuple[float, float] = (0.0, 0.0)

    @property
    def source(self) -> str:
        """The page's file."""
        return self.picture.source

    def place(self) -> dict[str, Any]:
        """Says where the page is."""
        return self.picture.place()

    def crop(self) -> dict[str, Any]:
        """Says what is cut from it."""
        crop: dict[str, Any] = {"points": [list(point) for point in self.points]}
        return crop | ({"size": list(self.size)} if self.size != (0.0, 0.0) else {})

    def read(self, limits: ImageLimits) -> Content:
        """Cuts the strip from the page, of which a process keeps the last two."""
        page = _page(cast("Hashable", self.picture), page_limits(limits), os.getpid())
        if isinstance(page, RowError):
            return page
        points = scaled(self.points, self.size, page.pixels.shape)
        return GreyImage(cut_polygon(page.pixels, points))


def picture_of(row: Mapping[str, Any], *, allow_http: bool = False) -> Picture:
    """Makes the picture that a row of the output was read from.

    Args:
        row: As a job writes it.
        allow_http: Whether web addresses may be read.

    Raises:
        InputError: If the row names no picture, or one that may not be read.
    """
    source, place, crop = row.get("source"), row.get("place") or {}, row.get("crop")
    if not isinstance(source, str):
        raise InputError("a row without its source")
    check_allowed(source, allow_http=allow_http)
    try:
        picture = _placed(source, place)
        if crop:
            points = tuple((float(x), float(y)) for x, y in crop["points"])
            width, height = crop.get("size", (0.0, 0.0))
            picture = CutPicture(picture, points, (float(width), float(height)))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{source}: the row's place or crop is none: {error}") from error
    return picture


def _placed(source: str, place: Mapping[str, Any]) -> Picture:
    if not place:
        return FilePicture(source)
    if "page" in place:
        return TiffPicture(source, **place)
    if "row" in place:
        return ParquetPicture(source, **place)
    return ZipPicture(source, **place) if "method" in place else TarPicture(source, **place)


def _check_size(size: int, limits: ImageLimits) -> None:
    if size > limits.max_bytes:
        raise ImageTooLargeError(f"the picture has {size:,} bytes, the limit is {limits.max_bytes:,} bytes")


def _read_at(location: str, start: int, size: int) -> bytes:
    with open_binary(location) as stream:
        stream.seek(start)
        return stream.read(size)


@lru_cache(maxsize=2)
def _page(picture: Hashable, limits: ImageLimits, _process: int) -> GreyImage | RowError:
    """Decodes a page; the last two are kept, as one's lines are mostly asked for in a row."""
    content = fetch(cast("Picture", picture), limits)
    if isinstance(content, bytes):
        try:
            return read_image(content, limits)
        except ImageError as error:
            return RowError.of(error)
    return content


def _parquet_group(location: str, column: str, group: int) -> Any:  # noqa: ANN401  (pyarrow has no types)
    """Reads a row group's pictures: Parquet can't be read in smaller pieces."""
    stamp = 0 if is_uri(location) else os.stat(location).st_mtime_ns
    return _parquet_group_at(location, column, group, stamp, os.getpid())


@lru_cache(maxsize=2)
def _parquet_group_at(location: str, column: str, group: int, _stamp: int, _process: int) -> Any:  # noqa: ANN401
    from pyarrow import parquet  # noqa: PLC0415  (of the extra `parquet`, which only this format needs)

    with open_binary(location) as stream:
        return parquet.ParquetFile(stream).read_row_group(group, columns=[column]).column(0)
