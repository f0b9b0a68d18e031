"""Reads the bytes of one image, and never more of them than an image may have."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

from glyphline.models.errors import ImageTooLargeError
from glyphline.models.image import ImageLimits
from glyphline.service.jobs.rows import RowError


def read_content(path: str, limits: ImageLimits) -> bytes | RowError:
    """Reads a regular file, or a link to one; a pipe would keep the job waiting for as long as nobody writes to it.

    Returns:
        Its bytes, or why there are none; a file whose size alone says that it is too large is not read.
    """
    try:
        if os.path.isdir(path):
            return RowError("unreadable_file", "is a folder")
        if os.path.islink(path) and not os.path.exists(path):
            return RowError("file_not_found", "is a link to nothing")
        with open(path, "rb", opener=_open_at_once) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                return RowError("unreadable_file", "is not a regular file")
            if status.st_size > limits.max_bytes:
                return _too_large(f"the file has {status.st_size:,} bytes", limits)
            return read_stream(stream, limits)
    except OSError as error:
        return RowError.of(error)


def _open_at_once(path: str, flags: int) -> int:
    """Opens a file; a pipe without a writer does not keep it waiting."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # Windows has neither the flag nor such pipes


def read_stream(stream: BinaryIO, limits: ImageLimits) -> bytes | RowError:
    """Reads a stream to its end, or until it is too long for an image."""
    content = stream.read(limits.max_bytes + 1)
    if len(content) > limits.max_bytes:
        return _too_large("it is too long", limits)
    return content


def _too_large(what: str, limits: ImageLimits) -> RowError:
    return RowError.of(ImageTooLargeError(f"{what}, the limit is {limits.max_bytes:,} bytes"))
