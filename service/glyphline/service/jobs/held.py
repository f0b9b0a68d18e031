"""Pictures within files that hold several: archives, TIFF with pages, Parquet."""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from PIL import TiffImagePlugin

from glyphline.models.errors import ImageError, ImageTooLargeError, UndecodableImageError
from glyphline.models.image import GreyImage, ImageLimits, to_grey
from glyphline.service.jobs.rows import printable
from glyphline.service.jobs.storage import is_uri, open_binary

__all__ = ["ParquetPicture", "TarPicture", "TiffPicture", "ZipPicture"]

_ZIP_HEADER = struct.Struct("<4s22xHH")
_STORED, _DEFLATED = 0, 8


@dataclass(frozen=True, slots=True)
class TarPicture:
    """A picture within a tar file that is not compressed: `size` bytes from `start` on."""

    source: str
    member: str
    start: int
    size: int

    def place(self) -> dict[str, Any]:
        """Names the member, and where its bytes are."""
        return {"member": printable(self.member), "start": self.start, "size": self.size}

    def read(self, limits: ImageLimits) -> bytes:
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

    def read(self, limits: ImageLimits) -> bytes:
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

    def read(self, limits: ImageLimits) -> GreyImage:
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

    def read(self, limits: ImageLimits) -> bytes:
        """Takes the bytes from the row group, of which a process keeps the last."""
        value = _parquet_group(self.source, self.column, self.group)[self.index].as_py()
        if isinstance(value, dict):
            value = value.get("bytes")
        if value is None:
            raise UndecodableImageError(f"row {self.row}: column {self.column!r} has no picture")
        _check_size(len(value), limits)
        return bytes(value)


def _check_size(size: int, limits: ImageLimits) -> None:
    if size > limits.max_bytes:
        raise ImageTooLargeError(f"the picture has {size:,} bytes, the limit is {limits.max_bytes:,} bytes")


def _read_at(location: str, start: int, size: int) -> bytes:
    with open_binary(location) as stream:
        stream.seek(start)
        return stream.read(size)


def _parquet_group(location: str, column: str, group: int) -> Any:  # noqa: ANN401  (pyarrow has no types)
    """Reads a row group's pictures: Parquet can't be read in smaller pieces."""
    stamp = 0 if is_uri(location) else os.stat(location).st_mtime_ns
    return _parquet_group_at(location, column, group, stamp, os.getpid())


@lru_cache(maxsize=2)
def _parquet_group_at(location: str, column: str, group: int, _stamp: int, _process: int) -> Any:  # noqa: ANN401
    from pyarrow import parquet  # noqa: PLC0415  (of the extra `parquet`, which only this format needs)

    with open_binary(location) as stream:
        return parquet.ParquetFile(stream).read_row_group(group, columns=[column]).column(0)
