"""Where a picture lies and how it is fetched from there, in whatever process that happens.

A picture is small and can be sent to another process; its bytes are read only there. What a row says of it (`place`,
`crop`) is enough to make it again: see `picture_of`.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, cast

from glyphline.models.cut import PAGE_LIMITS, Points, cut_polygon, scaled
from glyphline.models.errors import GlyphlineError, ImageError
from glyphline.models.image import GreyImage, ImageLimits, read_image
from glyphline.service.jobs.errors import InputError
from glyphline.service.jobs.files import read_file
from glyphline.service.jobs.held import ParquetPicture, TarPicture, TiffPicture, ZipPicture
from glyphline.service.jobs.patience import patiently
from glyphline.service.jobs.rows import RowError, unprinted
from glyphline.service.jobs.storage import check_allowed, is_uri

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


def page_limits(limits: ImageLimits) -> ImageLimits:
    """Returns the limits of pages, from which strips are cut: pages are larger."""
    return ImageLimits(max(limits.max_bytes, PAGE_LIMITS.max_bytes), max(limits.max_pixels, PAGE_LIMITS.max_pixels))


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
    """Fetches a picture; what is wrong with it is returned. A storage that fails for a moment is asked again.

    Raises:
        InputError: If what would read it is not installed: that concerns every picture of its kind.
    """
    try:
        return patiently(picture.source, lambda: picture.read(limits))
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
        return read_file(self.source, limits)


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
    source = source if is_uri(source) else unprinted(source)
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
