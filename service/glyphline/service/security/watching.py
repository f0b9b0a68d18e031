"""Files that are read again when they change. A version that cannot be used leaves the last good one in place."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from glyphline.models.errors import GlyphlineError

__all__ = ["Reloadable", "follow"]

logger = logging.getLogger(__name__)

_PAUSE_SECONDS = 1.0


class Reloadable(ABC):
    """What is read from files, and can be read again.

    Args:
        paths: The files.

    Raises:
        GlyphlineError: If they cannot be used.
    """

    def __init__(self, *paths: Path) -> None:
        self._paths = paths
        self.reload()

    def reload(self) -> None:
        """Reads the files; if they cannot be used, what was read before stays.

        Raises:
            GlyphlineError: If so.
        """
        self._seen = self._look()  # before the reading: what changes meanwhile is seen the next time
        self._read()

    def changed(self) -> bool:
        """Tells whether the files have changed since they were last read, well or not."""
        return self._look() != self._seen

    @abstractmethod
    def _read(self) -> None:
        """Reads the files and, once all is well, keeps what they say."""

    def _look(self) -> list[tuple[int, int, int] | None]:
        """Returns what changes when the files do. Links are followed: mounted secrets change by their links."""
        return [_look_at(path) for path in self._paths]


async def follow(what: str, files: Reloadable, on_result: Callable[[bool], None]) -> None:
    """Reads files again whenever they change, until it is cancelled.

    Args:
        what: Their name, for the log.
        files: The files.
        on_result: Called after each try with whether it succeeded.
    """
    while True:
        await asyncio.sleep(_PAUSE_SECONDS)
        if not await asyncio.to_thread(files.changed):
            continue
        try:
            await asyncio.to_thread(files.reload)
        except GlyphlineError as error:
            logger.error("%s not reloaded; the last good one stays", what, extra={"reason": str(error)})
            on_result(False)
        except Exception:
            logger.exception("%s not reloaded; the last good one stays", what)
            on_result(False)
        else:
            logger.info("%s reloaded", what)
            on_result(True)


def _look_at(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
