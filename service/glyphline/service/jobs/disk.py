"""The operations by which a job changes the disk, in one place, so that tests can let any of them fail."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["Disk"]


class Disk:
    """Changes files so that after a crash or a power failure each is either as before or as after.

    What `sync` and `sync_folder` have confirmed stays. Everything else may be lost, which is why each method says
    whether it confirms.
    """

    def append(self, path: Path) -> BinaryIO:
        """Opens a file to be written at its end, without a buffer of our own; creates it."""
        return path.open("ab", buffering=0)

    def write(self, stream: BinaryIO, content: bytes) -> None:
        """Writes all of it, unconfirmed."""
        view = memoryview(content)
        while view:
            view = view[stream.write(view) :]

    def sync(self, stream: BinaryIO) -> None:
        """Confirms what was written to a file."""
        os.fsync(stream.fileno())

    def cut(self, path: Path, size: int) -> None:
        """Shortens a file, confirmed."""
        with path.open("r+b") as stream:
            stream.truncate(size)
            os.fsync(stream.fileno())

    def replace(self, source: Path, target: Path) -> None:
        """Renames a file over another in one step, confirmed."""
        os.replace(source, target)
        self.sync_folder(target.parent)
        if source.parent != target.parent:
            self.sync_folder(source.parent)

    def remove(self, path: Path) -> None:
        """Removes a file or a folder with all that is in it, unconfirmed; what is not there is no matter."""
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def make_folder(self, path: Path) -> None:
        """Creates a folder and those above it, confirmed."""
        path.mkdir(parents=True, exist_ok=True)
        for above in (path.parent, path.parent.parent):
            self.sync_folder(above)

    def sync_folder(self, path: Path) -> None:
        """Confirms what was created in a folder, renamed or removed, where the system can."""
        if os.name == "nt":
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def write_whole(self, path: Path, content: bytes) -> None:
        """Writes a file that has all of its content or does not exist, confirmed."""
        with self.whole(path) as stream:
            self.write(stream, content)

    @contextmanager
    def whole(self, path: Path) -> Iterator[BinaryIO]:
        """Yields a file to write to, which takes its name when it is complete, confirmed."""
        temporary = path.with_name(f".{path.name}.new")
        self.remove(temporary)
        with self.append(temporary) as stream:
            yield stream
            self.sync(stream)
        self.replace(temporary, path)
