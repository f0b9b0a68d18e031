"""What a job reads: items, and the chunks of items that are its unit of work."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from glyphline.service.jobs.pictures import Picture

__all__ = ["Chunk", "Item", "chunks_of"]


@dataclass(frozen=True, slots=True)
class Item:
    """One picture of a job.

    Attributes:
        id: Names its row; no other item of the job has it.
        picture: Where it lies.
        reference: Its true text, where that is known.
        page: PAGE or ALTO file that it is a line of, if it is one.
        line: Which line of that file, counted from 0.
    """

    id: str
    picture: Picture
    reference: str | None = None
    page: str | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """Items that are read together. Which they are follows from the inputs alone, so it is the same in every run.

    Attributes:
        number: Its place in the job, from 0.
        items: The items.
    """

    number: int
    items: tuple[Item, ...]

    def digest(self) -> str:
        """Tells chunks of other items apart, without keeping the items."""
        names = "\0".join(item.id for item in self.items)
        return hashlib.blake2b(names.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def chunks_of(items: Iterable[Item], size: int) -> Iterator[Chunk]:
    """Cuts items into chunks of `size`, the last one shorter."""
    remaining = iter(items)
    for number in itertools.count():
        chunk = tuple(itertools.islice(remaining, size))
        if not chunk:
            return
        yield Chunk(number, chunk)
