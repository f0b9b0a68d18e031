"""One process for one job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from glyphline.service.jobs.errors import OutputError

__all__ = ["locked"]


def locked(path: Path) -> IO[bytes]:
    """Takes a file for this process alone, where the system has such locks; closing it, or dying, lets it go.

    Raises:
        OutputError: If another process has it.
    """
    stream = path.open("ab")
    try:
        import fcntl  # noqa: PLC0415  (absent on Windows)
    except ImportError:
        return stream
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another job may have removed the file between our opening and locking it: then it is no longer the lock.
        held = path.exists() and os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except OSError:
        held = False
    if not held:
        stream.close()
        raise OutputError(f"{path.parent}: another job is writing this output")
    return stream
