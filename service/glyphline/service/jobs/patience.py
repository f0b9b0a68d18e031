"""Asks a storage again that has failed for a moment: a network drops a connection, a bucket is throttled."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlsplit

from glyphline.models.errors import GlyphlineError
from glyphline.service.jobs.storage import is_uri

__all__ = ["patiently"]

PAUSES = (0.5, 1.0, 2.0, 4.0)
# What asking again does not change: a file that is not there, an access that is denied, content that is damaged.
_LASTING = (GlyphlineError, FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)
_LASTING_OTHERS = (ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, TypeError, ValueError)
_AGAIN = (408, 425, 429)  # refusals that ask for patience

_Result = TypeVar("_Result")


# Storages of which this process has lost patience: until one answers again, each picture is asked for once. Else a
# bucket that is gone would keep the job waiting for every picture of a chunk, before it stops.
_given_up: set[str] = set()


def patiently(location: str, read: Callable[[], _Result]) -> _Result:
    """Reads what lies at a location; where that is a URI, again after a pause if it fails for a passing reason.

    Args:
        location: Path or URI.
        read: Reads it.

    Raises:
        Exception: What the last try raised.
    """
    if not is_uri(location):
        return read()
    parts = urlsplit(location)
    storage = f"{parts.scheme}://{parts.netloc}"
    for pause in (*PAUSES, None):
        try:
            result = read()
        except Exception as error:
            reason = _reason(error)
            if not _passing(reason):
                raise
            if pause is None or storage in _given_up:
                _given_up.add(storage)
                raise reason from None
            time.sleep(pause)
        else:
            _given_up.discard(storage)
            return result
    raise AssertionError("the last try returns or raises")


def _reason(error: Exception) -> Exception:
    """Looks behind "not found", which fsspec says of a web address whatever kept it from reading there."""
    cause = error.__cause__
    return cause if isinstance(error, FileNotFoundError) and isinstance(cause, Exception) else error


def _passing(error: Exception) -> bool:
    """Whether it may be gone a moment later; each storage has errors of its own, many with the status of HTTP."""
    if isinstance(error, _LASTING) or (isinstance(error, _LASTING_OTHERS) and not isinstance(error, OSError)):
        return False
    status = getattr(error, "status", None) or getattr(error, "code", None)
    return not (isinstance(status, int) and 400 <= status < 500 and status not in _AGAIN)
