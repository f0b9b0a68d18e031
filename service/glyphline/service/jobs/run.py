"""Runs a job: items go through an engine, and their rows to an output."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from types import TracebackType
from typing import BinaryIO, Protocol, Self

from glyphline.service.jobs.engines.engine import Engine, ReadChunk
from glyphline.service.jobs.errors import InputError, JobError
from glyphline.service.jobs.items import Chunk
from glyphline.service.jobs.records import RowFormat
from glyphline.service.jobs.rows import RowError
from glyphline.service.jobs.tally import Tally

__all__ = ["CHUNK_ITEMS", "Output", "StreamOutput", "run"]

CHUNK_ITEMS = 128  # enough for the recogniser to group widths, few enough to share among many workers
_UNREADABLE = "unreadable_file"  # not missing and not denied: the disk, the network or the storage
_OPENING = frozenset({"file_not_found", "permission_denied", _UNREADABLE})
_LOST = 32  # items of a chunk of which none could be opened: then it is not they that are at fault


class Output(Protocol):
    """Where rows go."""

    @property
    def tally(self) -> Tally:
        """Counts of all rows so far."""
        ...

    def remaining(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yields the chunks that have no rows yet."""
        ...

    def add(self, chunk: Chunk, lines: Sequence[bytes], tally: Tally) -> None:
        """Takes the rows of a chunk."""
        ...

    def finish(self) -> None:
        """Is told that those were all."""
        ...


@dataclass(slots=True)
class StreamOutput:
    """Writes rows to an open stream, each chunk at once; nothing of them is kept."""

    stream: BinaryIO
    tally: Tally = field(default_factory=Tally)
    begun: float = field(default_factory=time.monotonic)

    def __enter__(self) -> Self:
        """Returns the output, whose time begins now."""
        self.begun = time.monotonic()
        return self

    def remaining(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yields all chunks."""
        yield from chunks

    def add(self, _: Chunk, lines: Sequence[bytes], tally: Tally) -> None:
        """Writes rows."""
        self.stream.write(b"".join(lines))
        self.stream.flush()
        self.tally.merge(tally)
        self.tally.seconds = time.monotonic() - self.begun

    def finish(self) -> None:
        """Does nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leaves the stream to its owner."""


def run(
    chunks: Iterable[Chunk],
    engine: Engine,
    output: Output,
    rows: RowFormat,
    *,
    in_order: bool = True,
    watch: Callable[[Tally], None] = lambda _: None,
) -> Tally:
    """Reads what has no rows yet, and completes the output.

    Args:
        chunks: All of the job.
        engine: What reads, ready.
        output: Where rows go, ready.
        rows: How they look.
        in_order: Whether rows must be in the order of the items.
        watch: Is told the counts after each chunk.

    Returns:
        The counts of the whole job.

    Raises:
        InputError: If there is no item at all.
        JobError: If nothing can be opened any more.
        GlyphlineError: If nothing can be read.
        OSError: If rows cannot be written.
    """
    with closing(engine.read(output.remaining(chunks), in_order=in_order)) as read:  # closing: the engine ends first
        for done in _unless_lost(read):
            lines = [rows.line(item, each) for item, each in zip(done.chunk.items, done.outcomes, strict=True)]
            tally = Tally()
            for item, outcome in zip(done.chunk.items, done.outcomes, strict=True):
                tally.add(outcome, item.reference)
            output.add(done.chunk, lines, tally)
            watch(output.tally)
    if not output.tally.images:
        raise InputError("no input: the folders and lists name no image")
    output.finish()
    return output.tally


def _unless_lost(read: Iterable[ReadChunk]) -> Iterator[ReadChunk]:
    """Yields what is read, and stops where a disk or a bucket is gone: rows would say that its pictures are at fault.

    A chunk that ends in pictures that could not be read waits for the next, which tells whether that goes on.

    Raises:
        JobError: If of a long chunk no picture could be opened, or many that followed each other could not be read.
    """
    held: list[ReadChunk] = []
    failing: list[tuple[str, RowError]] = []
    for done in read:
        errors = [each for each in done.outcomes if isinstance(each, RowError) and each.code in _OPENING]
        if len(done.outcomes) >= _LOST and len(errors) == len(done.outcomes):
            raise _lost(len(errors), done.chunk.items[0].picture.source, errors[0])
        for item, outcome in zip(done.chunk.items, done.outcomes, strict=True):
            if isinstance(outcome, RowError) and outcome.code == _UNREADABLE:
                failing.append((item.picture.source, outcome))
            else:
                failing.clear()
        if len(failing) >= _LOST:
            raise _lost(len(failing), *failing[0])
        held.append(done)
        if not failing:
            yield from held
            held.clear()
    yield from held


def _lost(count: int, first: str, error: RowError) -> JobError:
    return JobError(
        f"none of {count} pictures in a row could be opened, {first} the first of them: {error.message};"
        " is the disk or the storage there?"
    )
