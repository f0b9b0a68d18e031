"""Where rows go: a file that appears only when it is complete, or a stream."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TextIO

from glyphline.models.errors import GlyphlineError

PARTIAL_SUFFIX = ".partial"


class OutputError(GlyphlineError):
    """The output cannot be written as asked."""


class JsonLinesWriter:
    """Writes one JSON object a line to `<output>.partial` and renames it when the job is complete.

    So `output` either holds every row or does not exist (or is still the older file). The rows of a job that was
    stopped stay in the `.partial` file, for they cost time to make; the next job for the same output replaces it.
    """

    def __init__(self, output: Path, *, overwrite: bool = False) -> None:
        """Checks that `output` may be written, before any work is done.

        Raises:
            OutputError: If it exists and may not be overwritten, is no ordinary file, or its folder is missing.
        """
        self.output = Path(os.path.realpath(output))  # a link keeps pointing at what it points at
        self.partial = self.output.with_name(self.output.name + PARTIAL_SUFFIX)
        self._overwrite = overwrite
        self._stream: TextIO | None = None
        if not self.output.parent.is_dir():
            raise OutputError(f"{output}: the folder {self.output.parent} does not exist; create it first")
        if self.output.exists() and not self.output.is_file():
            raise OutputError(f"{output}: not an ordinary file; name a file, or - for the standard output")
        self._refuse_existing()

    def __enter__(self) -> Self:
        """Opens the partial file.

        Raises:
            OutputError: If another job is writing it, or it cannot be created.
        """
        try:
            descriptor = os.open(self.partial, os.O_WRONLY | os.O_CREAT, 0o666)
        except OSError as error:
            raise OutputError(f"{self.partial}: {error.strerror}") from error
        stream = os.fdopen(descriptor, "w", encoding="utf-8", newline="\n")
        if not _lock(stream, self.partial):
            stream.close()
            raise OutputError(f"{self.partial}: another job is writing this output")
        stream.truncate(0)  # only now: until the lock is held the rows may be another job's
        self._stream = stream
        return self

    def write(self, row: dict[str, Any]) -> None:
        """Adds one row."""
        assert self._stream is not None, "write() needs an entered writer"
        self._stream.write(_line(row))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Publishes the complete file, or leaves the partial one; an empty partial file is removed."""
        assert self._stream is not None
        with self._stream as stream:
            stream.flush()
            if kind is None:
                os.fsync(stream.fileno())
                self._refuse_existing()
                os.replace(self.partial, self.output)
            elif os.fstat(stream.fileno()).st_size == 0:
                self.partial.unlink()

    def _refuse_existing(self) -> None:
        if self.output.exists() and not self._overwrite:
            raise OutputError(f"{self.output}: exists already; choose another name or pass --overwrite")


class StreamWriter:
    """Writes one JSON object a line to an open stream, each line at once."""

    def __init__(self, stream: TextIO) -> None:
        """Keeps `stream`; it stays open."""
        self._stream = stream

    def __enter__(self) -> Self:
        """Returns the writer."""
        return self

    def write(self, row: dict[str, Any]) -> None:
        """Adds one row."""
        self._stream.write(_line(row))
        self._stream.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leaves the stream to its owner."""


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"


def _lock(stream: IO[str], path: Path) -> bool:
    """Takes the open file for this process alone, where the system has such locks; false if another job has it."""
    try:
        import fcntl  # noqa: PLC0415  # absent on Windows
    except ImportError:
        return True
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    # The other job may have renamed the file between our opening and locking it: then it is its output now.
    return path.exists() and os.path.samestat(os.fstat(stream.fileno()), path.stat())
