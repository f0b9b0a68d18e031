"""Fetches the picture of a row again: small for a page, or whole for a data set."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PIL import Image

from glyphline.models.errors import ImageError
from glyphline.models.image import FORMAT_SUFFIXES, GreyImage, ImageLimits, read_header, read_image
from glyphline.service.jobs.errors import InputError
from glyphline.service.jobs.pictures import fetch, picture_of
from glyphline.service.jobs.rows import RowError

__all__ = ["Strip", "fetch_strip", "image_file", "shown_strip"]

_HEIGHT, _WIDTH = 96, 6_000  # pixels of a strip on the page
_QUALITY = 80


@dataclass(frozen=True, slots=True)
class Strip:
    """A picture as a page shows it.

    Attributes:
        uri: All of it, as a `data:` URI.
        width: In pixels.
        height: In pixels.
    """

    uri: str
    width: int
    height: int


def fetch_strip(row: Mapping[str, Any], limits: ImageLimits, *, allow_http: bool) -> bytes | GreyImage | RowError:
    """Fetches the picture that a row was read from, or says why it cannot.

    Raises:
        InputError: If what would read it is not installed.
    """
    try:
        picture = picture_of(row, allow_http=allow_http)
    except InputError as error:
        return RowError("refused", str(error))
    content = fetch(picture, limits)
    if isinstance(content, RowError) and content.code == "file_not_found":
        return RowError(content.code, f"{row['source']} is no longer there")
    return content


def shown_strip(content: bytes | GreyImage | RowError, limits: ImageLimits) -> Strip | RowError:
    """Makes a picture small enough that a page can hold thousands: grey, as the model sees it."""
    if isinstance(content, RowError):
        return content
    try:
        grey = content if isinstance(content, GreyImage) else read_image(content, limits)
    except ImageError as error:
        return RowError.of(error)
    scale = min(1.0, _HEIGHT / grey.height, _WIDTH / grey.width)
    size = (max(1, round(grey.width * scale)), max(1, round(grey.height * scale)))
    image = Image.fromarray(grey.pixels).resize(size, Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
    return Strip(f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}", *size)


def image_file(content: bytes | GreyImage) -> tuple[bytes, str]:
    """Returns a picture as the bytes of an image file, and that file's ending. A file stays as it is.

    Raises:
        ImageError: If the bytes are no picture.
    """
    if isinstance(content, bytes):
        return content, FORMAT_SUFFIXES[read_header(content).format]
    buffer = io.BytesIO()
    Image.fromarray(content.pixels).save(buffer, "PNG", optimize=True)
    return buffer.getvalue(), ".png"
