"""What of a job is complete: a file to which a line is added with every step, and which is believed after a crash."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from glyphline.service.jobs.disk import Disk
from glyphline.service.jobs.errors import OutputError
from glyphline.service.jobs.tally import Tally

__all__ = ["Ledger", "Progress"]


@dataclass(slots=True)
class Progress:
    """How far a job is.

    Attributes:
        chunks: Digest of every chunk whose rows are written, by its number.
        part: Number of the part that rows are being added to; all before it are published.
        end: Bytes of that part that are complete.
        rows: Rows of that part.
        publishing: Whether that part was being published.
        finished: Whether all is done.
        tally: Counts of all rows that are written.
    """

    chunks: dict[int, str] = field(default_factory=dict)
    part: int = 0
    end: int = 0
    rows: int = 0
    publishing: bool = False
    finished: bool = False
    tally: Tally = field(default_factory=Tally)

    def apply(self, entry: dict[str, Any]) -> None:
        """Takes the next line into account."""
        match entry["step"]:
            case "rows":
                self.chunks.update((number, digest) for number, digest in entry["chunks"])
                self.end = entry["end"]
                tally = Tally.from_json(entry["tally"])
                self.rows += tally.images
                self.tally.merge(tally)
            case "publishing":
                self.publishing = True
            case "published":
                self.part, self.end, self.rows, self.publishing = entry["part"] + 1, 0, 0, False
            case "finished":
                self.finished = True
            case other:
                raise ValueError(f"an unknown step {other!r}")


class Ledger:
    """The file, open for adding to it.

    A line counts when it is whole. The last one may be cut short by a crash; then what it stood for did not happen, and
    is done again.
    """

    def __init__(self, path: Path, disk: Disk) -> None:
        """Reads what there is, and drops a last line that is not whole.

        Raises:
            OutputError: If another line than the last is damaged: then nothing can be believed.
        """
        self.progress = Progress()
        self._disk = disk
        self._path = path
        whole = 0
        if path.exists():
            lines = path.read_bytes().splitlines(keepends=True)
            for number, line in enumerate(lines, 1):
                try:
                    if not line.endswith(b"\n"):
                        raise ValueError("not whole")
                    self.progress.apply(json.loads(line))
                except (KeyError, TypeError, ValueError) as error:
                    if number < len(lines):
                        raise OutputError(f"{path}, line {number}: damaged; --overwrite starts again") from error
                    break
                whole += len(line)
            if whole < path.stat().st_size:
                disk.cut(path, whole)
        self._stream: BinaryIO = disk.append(path)

    def add_rows(self, chunks: Sequence[tuple[int, str]], end: int, tally: Tally) -> None:
        """Notes that the rows of chunks are written, up to `end` bytes of the part; confirmed."""
        self._add({"step": "rows", "chunks": chunks, "end": end, "tally": tally.as_json()})

    def add_publishing(self, part: int) -> None:
        """Notes that a part is about to be given its place; confirmed."""
        self._add({"step": "publishing", "part": part})

    def add_published(self, part: int) -> None:
        """Notes that a part has its place; confirmed."""
        self._add({"step": "published", "part": part})

    def add_finished(self) -> None:
        """Notes that all is done; confirmed."""
        self._add({"step": "finished"})

    def close(self) -> None:
        """Closes the file."""
        self._stream.close()

    def _add(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
        self._disk.write(self._stream, line)
        self._disk.sync(self._stream)
        self.progress.apply(json.loads(line))
