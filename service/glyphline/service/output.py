"""What decoders say besides raising an error: it is kept from the log, or becomes lines of it.

Whoever sends a damaged file is told by its error. But Pillow warns and logs as well, and C code such as libtiff's
writes to standard error, where the log is. Callers must make neither errors in the log nor lines that are no lines.
"""

from __future__ import annotations

import logging
import os
import threading
import warnings
from multiprocessing.connection import Connection

__all__ = ["divert_output", "follow_output", "quiet_decoders"]

logger = logging.getLogger(__name__)

_LONGEST_LINE = 500  # bytes; what is longer becomes several
_STANDARD_ERROR = 2


def quiet_decoders() -> None:
    """Has Pillow neither warn nor log in this process."""
    warnings.filterwarnings("ignore", module=r"PIL\.")
    logging.getLogger("PIL").setLevel(logging.CRITICAL)


def divert_output(output: Connection) -> None:
    """Sends what this process writes to standard error through a pipe, from C code too.

    Args:
        output: The pipe's end to write to. It is closed: standard error takes its place.
    """
    os.dup2(output.fileno(), _STANDARD_ERROR)
    output.close()


def follow_output(output: Connection, worker: int) -> None:
    """Writes what comes through a pipe to the log, in a thread that ends with the pipe: last words are among it.

    Args:
        output: The pipe's end to read from. It is closed in the end.
        worker: Number of the worker at the other end.
    """
    threading.Thread(target=_follow, args=(output, worker), name=f"glyphline-output-{worker}", daemon=True).start()


def _follow(output: Connection, worker: int) -> None:
    with output, open(output.fileno(), "rb", closefd=False) as lines:
        while line := lines.readline(_LONGEST_LINE):
            if text := line.decode("utf-8", "replace").strip():
                logger.info("worker output", extra={"worker": worker, "text": text})
