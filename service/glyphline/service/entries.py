"""What the batch queue takes, what bounds its batches, and what becomes of every item."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["BatchLimits", "Entry", "Expired", "Failed", "Finished", "Item", "Outcome", "Value", "Withdrawn"]

Item = TypeVar("Item")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Finished(Generic[Value]):
    """The item was run and has a value."""

    value: Value


@dataclass(frozen=True, slots=True)
class Failed:
    """The item came to no result."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Expired:
    """The item's deadline passed."""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Nobody waits for the item any more."""


Outcome = Finished[Value] | Failed | Expired | Withdrawn


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How much a batch may hold; a single item is a batch however large it is.

    An image costs what its file costs to decode and its strip to read, which for photographs is a thousand times what
    it is for strips. The bounds together aim at a second a batch, so that what is urgent soon has its turn.

    Attributes:
        items: Most items.
        pixels: Most pixels of their files.
        work: Most work of reading them, in columns of strips.
        size: Most bytes of their files.
    """

    items: int
    pixels: int
    work: int
    size: int


@dataclass(frozen=True, slots=True)
class Entry(Generic[Item, Value]):
    """An item as it is submitted.

    Attributes:
        item: What is to be run.
        key: Only items of one key share a batch.
        client: Who sent it. Clients take turns.
        width: Width of the item's image after padding to its bucket.
        work: What reading it costs, in columns of strips.
        pixels: Pixels of the item's file.
        size: Bytes that the item occupies while it waits.
        priority: The higher goes first.
        deadline: Moment of the queue's clock after which the item must not be run; None for none.
        settle: Called exactly once, with the outcome.
    """

    item: Item
    key: Hashable
    client: Hashable
    width: int
    work: int
    pixels: int
    size: int
    priority: int
    deadline: float | None
    settle: Callable[[Outcome[Value]], None]
