"""The server's own copies of the bundles that it holds.

A worker that is replaced loads its models again, and a new version is loaded beside those before it. So what is held
must be there for as long as it is held, even after its folder was removed from the repository, as one does to go back
to an earlier version.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path

__all__ = ["Copies"]

logger = logging.getLogger(__name__)


class Copies:
    """A folder for copies, which goes when it is closed, or at the end of the program.

    If none can be made, the originals have to do.
    """

    def __init__(self) -> None:
        self._root: Path | None = None
        self._finalizer: Callable[[], object] | None = None
        try:
            self._root = Path(tempfile.mkdtemp(prefix="glyphline-models-"))
            lock = os.open(self._root, os.O_RDONLY)
            self._finalizer = weakref.finalize(self, _remove, self._root, lock)
            fcntl.flock(lock, fcntl.LOCK_SH)  # those who tidy up old temporary files leave what is locked
        except OSError as error:
            logger.warning("models are not copied: do not remove what is served from its repository: %s", error)

    def make(self, folder: Path) -> Path:
        """Copies a bundle.

        Args:
            folder: Its folder, `<name>/<version>` at its end.

        Returns:
            Where the copy is, or the folder itself if it cannot be copied.
        """
        if self._root is None:
            return folder
        copy = self._root / folder.parent.name / folder.name
        self.remove(copy)
        try:
            shutil.copytree(folder, copy)
        except OSError as error:
            logger.warning("%s is not copied: do not remove it while it is served: %s", folder, error)
            self.remove(copy)
            return folder
        return copy

    def remove(self, copy: Path) -> None:
        """Removes a copy; what is none stays."""
        if self._root is not None and copy.is_relative_to(self._root):
            shutil.rmtree(copy, ignore_errors=True)

    def close(self) -> None:
        """Removes all copies."""
        if self._finalizer is not None:
            self._finalizer()


def _remove(root: Path, lock: int) -> None:
    shutil.rmtree(root, ignore_errors=True)
    os.close(lock)
