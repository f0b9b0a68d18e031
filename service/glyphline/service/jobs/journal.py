"""The folder that a job is run from: its settings, its rows so far, and what of it is complete.

A step counts when the ledger has its line, and everything else can be made again from what counted. Rows are added to a
file and confirmed before their line is; parts of the output are written under another name and renamed before theirs
is. So a job that is killed between any two writes loses no row and repeats none: what has no line is done again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from types import TracebackType
from typing import Any, BinaryIO, Self

from glyphline.service.jobs import summary
from glyphline.service.jobs.beginning import SCHEMA, SETTINGS, SUMMARY, Start, check_place, check_start, stored_settings
from glyphline.service.jobs.disk import Disk
from glyphline.service.jobs.errors import InputError, OutputError
from glyphline.service.jobs.items import Chunk
from glyphline.service.jobs.ledger import Ledger, Progress
from glyphline.service.jobs.locking import locked
from glyphline.service.jobs.sinks import Layout, publish
from glyphline.service.jobs.tally import Tally

__all__ = ["Journal"]

LEDGER = "ledger.jsonl"
LOCK = "lock"
_SECONDS = 2.0  # between two confirmations; what a killed job has to read again
_BYTES = 4 * 2**20  # of rows that wait for one


class Journal:
    """A job's rows on the disk."""

    def __init__(
        self,
        layout: Layout,
        settings: Mapping[str, Any],
        start: Start,
        disk: Disk | None = None,
        *,
        seconds: float = _SECONDS,
    ) -> None:
        """Checks that the output may be written, before any work is done.

        Args:
            layout: Where everything lies.
            settings: What the rows depend on; a job goes on only with the same.
            start: Whether to begin, to go on with what there is, or to begin again.
            disk: How files are changed.
            seconds: Time between two confirmations.

        Raises:
            OutputError: If there is an output or a job already that may not be touched, or it had other settings.
        """
        self.layout = layout
        self._settings = dict(settings)
        self._start = start
        self._disk = disk or Disk()
        self._seconds = seconds
        self._broken = False
        self._begun = False
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._chunks: list[tuple[int, str]] = []
        self._tally = Tally()
        self._segment: BinaryIO | None = None
        self._progress = Progress()
        check_place(layout)
        check_start(layout, self._settings, start)

    def __enter__(self) -> Self:
        """Takes the job for this process alone, and brings the files into the state of the last line of the ledger.

        Raises:
            OutputError: If another process has it.
        """
        layout, disk = self.layout, self._disk
        self._made_output = layout.folder and not layout.output.exists()
        disk.make_folder(layout.job)
        with ExitStack() as opened:
            opened.enter_context(locked(layout.job / LOCK))
            if self._start == "resume" and stored_settings(layout) is None:
                self._start = "new"
            check_start(layout, self._settings, self._start)  # again: another job may have ended meanwhile
            if self._start != "resume":
                self._begin()
            self._ledger = opened.enter_context(closing(Ledger(layout.job / LEDGER, disk)))
            self._progress = self._ledger.progress
            if self._begun:
                disk.sync_folder(layout.job)
                settings = {"schema": SCHEMA, "overwrite": self._start == "overwrite", "settings": self._settings}
                disk.write_whole(layout.job / SETTINGS, json.dumps(settings, indent=2).encode() + b"\n")
            self._replaces = bool((stored_settings(layout) or {}).get("overwrite"))
            if not self._begun:
                self._recover()
            self._opened = opened.pop_all()
        self._last = time.monotonic()
        return self

    @property
    def finished(self) -> bool:
        """Whether the job was complete before."""
        return self._progress.finished

    @property
    def tally(self) -> Tally:
        """Counts of all rows so far, those of earlier runs among them."""
        whole = Tally()
        whole.merge(self._progress.tally)
        whole.merge(self._tally)
        return whole

    @property
    def kept(self) -> int:
        """Rows that are safe."""
        return self._progress.tally.images

    def remaining(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yields the chunks that have no rows yet.

        Raises:
            InputError: If the inputs are not those of the runs before: a chunk has other items, or one is missing.
        """
        known = dict(self._progress.chunks)
        for chunk in chunks:
            digest = known.pop(chunk.number, None)
            if digest is None:
                yield chunk
            elif digest != chunk.digest():
                raise self._changed(f"from {chunk.items[0].id!r} to {chunk.items[-1].id!r} they are not what they were")
        if known:
            raise self._changed("there are fewer than before")

    def add(self, chunk: Chunk, lines: Sequence[bytes], tally: Tally) -> None:
        """Adds the rows of a chunk. They are safe a moment later, or when the job ends for whatever reason.

        Args:
            chunk: The chunk.
            lines: Its rows as lines of JSON, in order.
            tally: Their counts.

        Raises:
            OSError: If they cannot be written.
        """
        self._pending += lines
        self._pending_bytes += sum(map(len, lines))
        self._chunks.append((chunk.number, chunk.digest()))
        self._tally.merge(tally)
        if time.monotonic() - self._last >= self._seconds or self._pending_bytes >= _BYTES:
            self.commit()
        if self.layout.divided and self._progress.rows + self._tally.images >= self.layout.part_rows:
            self.commit()
            self._publish()

    def commit(self) -> None:
        """Makes all rows safe.

        Raises:
            OSError: If they cannot be written.
        """
        now = time.monotonic()
        self._tally.seconds += now - self._last
        self._last = now
        if not self._chunks:
            return
        self._broken = True  # until it is done: what follows a failed write must not be noted
        if self._segment is None:
            self._segment = self._disk.append(self.layout.segment(self._progress.part))
            self._disk.sync_folder(self.layout.job)
        content = b"".join(self._pending)
        self._disk.write(self._segment, content)
        self._disk.sync(self._segment)
        self._ledger.add_rows(self._chunks, self._progress.end + len(content), self._tally)
        self._pending, self._pending_bytes, self._chunks, self._tally = [], 0, [], Tally()
        self._broken = False

    def finish(self) -> None:
        """Gives the rows their place; then the job is complete.

        Raises:
            OSError: If they cannot be written.
            OutputError: If something else has taken the place meanwhile.
        """
        self.commit()
        progress = self._progress
        if progress.rows:
            self._publish()
        self._broken = True
        counts = {"settings": self._settings, **summary.as_json(self.tally)}
        self._disk.write_whole(self.layout.job / SUMMARY, json.dumps(counts, indent=2).encode() + b"\n")
        self._ledger.add_finished()
        self._broken = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Keeps what has been read, whatever has ended the job; of a job without any row nothing stays."""
        with self._opened:
            try:
                if kind is not None and not self._broken:
                    with suppress(OSError):
                        self.commit()
            finally:
                if self._segment is not None:
                    self._segment.close()
            if self._begun and not self.kept:
                with suppress(OSError):
                    self._disk.remove(self.layout.job)
                    if self._made_output:
                        self.layout.output.rmdir()

    def _publish(self) -> None:
        """Gives the part that rows are being added to its place."""
        layout, part = self.layout, self._progress.part
        if self._segment is not None:
            self._segment.close()
            self._segment = None
        target = layout.published(part)
        if not self._replaces and not self._progress.publishing and os.path.lexists(target):
            raise OutputError(f"{target}: has appeared meanwhile; move it away, then --resume puts the rows there")
        self._broken = True
        self._ledger.add_publishing(part)
        publish(layout, part, self._disk)
        self._ledger.add_published(part)
        self._disk.remove(layout.segment(part))
        self._broken = False

    def _begin(self) -> None:
        """Removes what there is, the settings first: what is half removed cannot be gone on with."""
        layout, disk = self.layout, self._disk
        self._begun = True
        disk.remove(layout.job / SETTINGS)
        disk.sync_folder(layout.job)
        for path in layout.job.iterdir():
            if path.name != LOCK:
                disk.remove(path)
        if layout.folder and self._start == "overwrite":
            for path in layout.leftovers():
                if layout.is_ours(path):
                    disk.remove(path)

    def _recover(self) -> None:
        """Drops rows that the ledger does not know, and parts that are published."""
        layout, progress = self.layout, self._progress
        for path in layout.job.glob("rows-*.jsonl"):
            if path != layout.segment(progress.part):
                self._disk.remove(path)
        segment = layout.segment(progress.part)
        size = segment.stat().st_size if segment.exists() else 0
        if size > progress.end:
            self._disk.cut(segment, progress.end)
        elif size < progress.end and not progress.publishing:
            raise OutputError(f"{segment}: {progress.end - size:,} bytes are missing; --overwrite starts again")
        if progress.publishing or (layout.divided and progress.rows >= layout.part_rows):
            self._publish()

    def _changed(self, how: str) -> InputError:
        return InputError(
            f"the inputs have changed since the job began: {how}. Put them back to go on, or --overwrite to start again"
        )
