"""What reads the pictures of a job: chunks go in, what became of each item comes out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, TypeVar

from glyphline.service.jobs.items import Chunk
from glyphline.service.jobs.records import ModelIdentity
from glyphline.service.jobs.rows import Outcome

__all__ = ["Engine", "ReadChunk", "in_flight"]


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """A chunk that has been read.

    Attributes:
        chunk: The chunk.
        outcomes: One for each of its items, in order.
    """

    chunk: Chunk
    outcomes: list[Outcome]


class Engine(Protocol):
    """Reads chunks. What it makes of an item depends on neither other chunks nor the order in which they are read."""

    @property
    def model(self) -> ModelIdentity:
        """What reads."""
        ...

    def __enter__(self) -> Self:
        """Gets ready."""
        ...

    def read(self, chunks: Iterable[Chunk], *, in_order: bool) -> Generator[ReadChunk, None, None]:
        """Reads chunks, several at a time, and yields each when it is done.

        Args:
            chunks: Taken only as far ahead as keeps the engine busy, so that neither their number nor a slow reader of
                the outcomes costs memory.
            in_order: Whether they must come in their order.

        Raises:
            GlyphlineError: If no item can be read at all: then nothing of the chunk is to be written.
        """
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Ends what it has started."""
        ...


class _Task(Protocol):
    @property
    def future(self) -> Future[list[Outcome]]: ...


Task = TypeVar("Task", bound=_Task)


def in_flight(
    chunks: Iterable[Chunk],
    most: int,
    submit: Callable[[Chunk], Task],
    collect: Callable[[Task], list[Outcome]],
    *,
    in_order: bool,
) -> Iterator[ReadChunk]:
    """Keeps up to `most` chunks at work and yields them as they are done, or in order."""
    waiting: deque[tuple[Chunk, Task]] = deque()
    for chunk in chunks:
        waiting.append((chunk, submit(chunk)))
        if len(waiting) >= most:
            yield _next(waiting, collect, in_order)
    while waiting:
        yield _next(waiting, collect, in_order)


def _next(waiting: deque[tuple[Chunk, Task]], collect: Callable[[Task], list[Outcome]], in_order: bool) -> ReadChunk:
    place = 0
    if not in_order:
        futures = [task.future for _, task in waiting]
        wait(futures, return_when=FIRST_COMPLETED)
        place = next(index for index, future in enumerate(futures) if future.done())
    chunk, task = waiting[place]
    del waiting[place]
    return ReadChunk(chunk, collect(task))
