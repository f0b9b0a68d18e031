"""Reads the bytes of one image, and never more of them than an image may have."""

from __future__ import annotations

import os
from typing import BinaryIO

from glyphline.models.errors import ImageTooLargeError
from glyphline.models.image import ImageLimits
from glyphline.service.jobs.rows import RowError
from glyphline.service.jobs.storage import is_uri, open_binary

__all__ = ["read_content", "read_file", "read_stream"]


def read_content(location: str, limits: ImageLimits) -> bytes | RowError:
    """Reads a regular file, a link to one, or what a URI names.

    Returns:
        Its bytes, or why there are none; a file whose size alone says that it is too large is not read.

    Raises:
        InputError: If it is a URI and what reads it is not installed.
    """
    try:
        return read_file(location, limits)
    except OSError as error:
        return RowError.of(error)


def read_file(location: str, limits: ImageLimits) -> bytes | RowError:
    """Reads as `read_content` does, and leaves it to the caller what a failure means.

    Raises:
        OSError: If it cannot be read.
        InputError: If it is a URI and what reads it is not installed.
    """
    with open_binary(location) as stream:
        if not is_uri(location) and (size := os.fstat(stream.fileno()).st_size) > limits.max_bytes:
            return _too_large(f"the file has {size:,} bytes", limits)
        return read_stream(stream, limits)


def read_stream(stream: BinaryIO, limits: ImageLimits) -> bytes | RowError:
    """Reads a stream to its end, or until it is too long for an image."""
    content = stream.read(limits.max_bytes + 1)
    if len(content) > limits.max_bytes:
        return _too_large("it is too long", limits)
    return content


def _too_large(what: str, limits: ImageLimits) -> RowError:
    return RowError.of(ImageTooLargeError(f"{what}, the limit is {limits.max_bytes:,} bytes"))
