"""Which images form the next batch: the pure core of the batcher, with an injected clock and no asyncio.

Every image that enters leaves with exactly one outcome, its own:

    submit ─► waiting ─► take ─► running ─► finish | fail
                 │  └► take, too late ─► Expired
                 └─────── withdraw ─────► Withdrawn, or Expired if its deadline is reached

Too late is an item whose deadline has passed, and one that has waited so long that its deadline would pass while it is
run, going by the last batch of its kind. Without the latter an overloaded server would always run what is about to
expire, and answer nobody in time.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from glyphline.service.errors import QueueFullError

__all__ = ["BatchLimits", "BatchQueue", "Entry", "Expired", "Failed", "Finished", "Outcome", "Ticket", "Withdrawn"]

Item = TypeVar("Item")
Value = TypeVar("Value")

# A caller whose own timer ends cancels its call a moment before the server's copy of the deadline.
_DEADLINE_TOLERANCE_SECONDS = 0.05
# Images of neighbouring widths share a batch as long as the narrowest is padded by no more than this.
_MAX_PADDING = 0.25
# Batches vary: an item is run only if it has this many times as long as the last batch of its kind took.
_RUN_MARGIN = 1.5
_MAX_REMEMBERED_KINDS = 256
# So often the longest waiting leads a batch and not the most urgent: none starves, and yet what is urgent never waits
# for a whole backlog, as it would if waiting made everything urgent.
_LONGEST_WAITING_EVERY = 4


@dataclass(frozen=True, slots=True)
class Finished(Generic[Value]):
    """The item was run and has a value."""

    value: Value


@dataclass(frozen=True, slots=True)
class Failed:
    """The item's batch came to no result."""

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
        columns: Most columns of their strips.
        size: Most bytes of their files.
    """

    items: int
    pixels: int
    columns: int
    size: int


@dataclass(frozen=True, slots=True)
class Entry(Generic[Item, Value]):
    """An item as it is submitted.

    Attributes:
        item: What is to be run.
        key: Only items of one key share a batch.
        width: Width of the item's image after padding to its bucket.
        pixels: Pixels of the item's file.
        size: Bytes that the item occupies while it waits.
        priority: The higher goes first.
        deadline: Moment of the queue's clock after which the item must not be run; None for none.
        settle: Called exactly once, with the outcome.
    """

    item: Item
    key: Hashable
    width: int
    pixels: int
    size: int
    priority: int
    deadline: float | None
    settle: Callable[[Outcome[Value]], None]


class _State(enum.Enum):
    WAITING = enum.auto()
    RUNNING = enum.auto()
    SETTLED = enum.auto()


@dataclass(slots=True, eq=False)
class Ticket(Generic[Item, Value]):
    """A submitted item's place in the queue.

    Attributes:
        entry: The item as submitted.
        submitted_at: Moment of the queue's clock.
    """

    entry: Entry[Item, Value]
    submitted_at: float
    _state: _State = field(default=_State.WAITING)


class BatchQueue(Generic[Item, Value]):
    """A bounded queue that hands out batches of like items, the most urgent first.

    Args:
        max_items: Most items that wait.
        max_bytes: Most bytes that wait.
        limits: How much a batch may hold.
        clock: Seconds, monotonic.
    """

    def __init__(self, *, max_items: int, max_bytes: int, limits: BatchLimits, clock: Callable[[], float]) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._limits = limits
        self._batches = 0
        self._clock = clock
        self._waiting: dict[Ticket[Item, Value], None] = {}  # ordered by arrival, removed from anywhere
        self._waiting_bytes = 0
        self._run_seconds: dict[Hashable, float] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def submit(self, entries: Sequence[Entry[Item, Value]]) -> list[Ticket[Item, Value]]:
        """Adds all of `entries` or, if they do not fit, none.

        Raises:
            QueueFullError: If they do not fit; the message names the limit.
        """
        size = sum(entry.size for entry in entries)
        if len(self._waiting) + len(entries) > self._max_items:
            raise QueueFullError(f"{len(self._waiting)} images are waiting and at most {self._max_items} may")
        if self._waiting and self._waiting_bytes + size > self._max_bytes:
            raise QueueFullError(
                f"images of {self._waiting_bytes} bytes are waiting and at most {self._max_bytes} bytes may"
            )
        now = self._clock()
        tickets = [Ticket(entry, now) for entry in entries]
        self._waiting.update(dict.fromkeys(tickets))
        self._waiting_bytes += size
        return tickets

    def withdraw(self, ticket: Ticket[Item, Value]) -> None:
        """Settles an item that nobody waits for; nothing happens if it is settled already."""
        if ticket._state is _State.WAITING:
            self._remove(ticket)
        deadline = ticket.entry.deadline
        late = deadline is not None and self._clock() >= deadline - _DEADLINE_TOLERANCE_SECONDS
        self._settle(ticket, Expired() if late else Withdrawn())

    def take(self, workers: int = 1) -> list[Ticket[Item, Value]]:
        """Removes and returns the next batch, after dropping what has expired.

        The most urgent item leads; like items fill the batch, its own width first, then the nearest.

        Args:
            workers: How many workers are free. What waits is shared between them.

        Returns:
            Items of one key, within the limits of a batch; none if none wait.
        """
        now = self._clock()
        self._drop_expired(now)
        if not self._waiting:
            return []
        limit = min(self._limits.items, math.ceil(len(self._waiting) / workers))
        self._batches += 1
        if self._batches % _LONGEST_WAITING_EVERY == 0:
            lead = next(iter(self._waiting))
        else:
            lead = max(self._waiting, key=_priority)  # of equal priority the earliest
        like = [ticket for ticket in self._waiting if ticket.entry.key == lead.entry.key and ticket is not lead]
        like.sort(key=lambda ticket: (abs(ticket.entry.width - lead.entry.width), -_priority(ticket)))
        batch = [lead]
        narrowest = widest = columns = lead.entry.width
        pixels, size = lead.entry.pixels, lead.entry.size
        for ticket in like:
            if len(batch) == limit:
                break
            entry = ticket.entry
            low, high = min(narrowest, entry.width), max(widest, entry.width)
            fits = (
                high <= low * (1 + _MAX_PADDING)
                and columns + entry.width <= self._limits.columns
                and pixels + entry.pixels <= self._limits.pixels
                and size + entry.size <= self._limits.size
            )
            if fits:
                batch.append(ticket)
                narrowest, widest = low, high
                columns, pixels, size = columns + entry.width, pixels + entry.pixels, size + entry.size
        for ticket in batch:
            self._remove(ticket)
            ticket._state = _State.RUNNING
        return batch

    def observe_run(self, key: Hashable, seconds: float) -> None:
        """Notes how long a batch of a kind took."""
        self._run_seconds.pop(key, None)
        self._run_seconds[key] = seconds
        if len(self._run_seconds) > _MAX_REMEMBERED_KINDS:
            del self._run_seconds[next(iter(self._run_seconds))]

    def finish(self, ticket: Ticket[Item, Value], value: Value) -> None:
        """Settles a taken item with its value, unless it was withdrawn meanwhile."""
        self._settle(ticket, Finished(value))

    def fail(self, ticket: Ticket[Item, Value], error: Exception) -> None:
        """Settles a taken item with its batch's error, unless it was withdrawn meanwhile."""
        self._settle(ticket, Failed(error))

    def _drop_expired(self, now: float) -> None:
        for ticket in list(self._waiting):
            if self._is_too_late(ticket, now):
                self._remove(ticket)
                self._settle(ticket, Expired())

    def _is_too_late(self, ticket: Ticket[Item, Value], now: float) -> bool:
        if ticket.entry.deadline is None:
            return False
        remaining = ticket.entry.deadline - now
        if remaining <= 0:
            return True
        run = self._run_seconds.get(ticket.entry.key, 0.0)
        # One that did not wait for others' batches gets its chance, whatever they took.
        return now - ticket.submitted_at >= run and remaining < _RUN_MARGIN * run

    def _remove(self, ticket: Ticket[Item, Value]) -> None:
        del self._waiting[ticket]
        self._waiting_bytes -= ticket.entry.size

    def _settle(self, ticket: Ticket[Item, Value], outcome: Outcome[Value]) -> None:
        if ticket._state is not _State.SETTLED:
            ticket._state = _State.SETTLED
            ticket.entry.settle(outcome)


def _priority(ticket: Ticket[Item, Value]) -> int:
    return ticket.entry.priority
