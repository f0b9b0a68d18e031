"""Which images form the next batch: the pure core of the batcher, with an injected clock and no asyncio.

Every image that enters leaves with exactly one outcome, its own:

    submit ─► waiting ─► take ─► running ─► finish | fail ─► Finished | Failed
                │ ▲       └► too late ─► Expired   │
                │ └─ among suspects, in halves ─ lost ─► Failed, if it was alone and it is the second time
                ├─ withdraw ─► Withdrawn, or Expired if its deadline is reached
                └─ pushed out by a client that has less ─► Failed(QueueFullError)

**Who is next.** Of the highest priority that waits, the client that was given least so far; of its images the one whose
deadline is nearest. Every fourth batch is led by what has waited longest instead, whatever its priority and whoever
sent it. So an image that has n others before it leads after at most 4 (n + 1) batches: none starves.

**Too late** is an item whose deadline has passed, and one that has waited so long that its deadline might pass while it
is run: one that has less left than twice what batches of its kind take. Without the latter an overloaded server would
always run what is about to expire, and answer nobody in time. A batch is made no larger than can be expected to take a
third of the time that its callers gave, so what has not waited for a third of its own is never too late.

**Suspects** are the items of a batch over which a worker died. They are run again in halves, by themselves, so that the
one that kills is found and takes no others along. They are run only while another worker lives, or when they have
waited for one long enough: one bad image does not end the last worker.
"""

from __future__ import annotations

import enum
import math
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic

from glyphline.service.entries import BatchLimits, Entry, Expired, Failed, Finished, Item, Outcome, Value, Withdrawn
from glyphline.service.errors import QueueFullError
from glyphline.service.pace import Pace

__all__ = ["SUSPECT_PATIENCE_SECONDS", "BatchQueue", "Ticket"]

SUSPECT_PATIENCE_SECONDS = 10.0
"""So long suspects wait for a second worker, then the last one is risked."""

# A caller whose own timer ends cancels its call a moment before the server's copy of the deadline.
_DEADLINE_TOLERANCE_SECONDS = 0.05
# Images of neighbouring widths share a batch as long as the narrowest is padded by no more than this.
_MAX_PADDING = 0.25
# Batches vary, and the answer must travel: an item is run only if it has this many times as long as batches take.
_RUN_MARGIN = 2.0
# Of the time that a caller gives, a batch may take this share: another goes by while the item waits for a worker.
_RUN_SHARE = 1 / 3
_MAX_IDLE_KINDS = 256
# So often the longest waiting leads a batch and not the most urgent: none starves, and yet what is urgent never waits
# for a whole backlog, as it would if waiting made everything urgent.
_LONGEST_WAITING_EVERY = 4
_DEATHS_ALONE = 2  # an item over which a worker died alone is run again once, unless another had died over its batch


class _State(enum.Enum):
    WAITING = enum.auto()
    RUNNING = enum.auto()
    SETTLED = enum.auto()


@dataclass(slots=True, eq=False)
class _Kind(Generic[Item, Value]):
    """The items of one key: those that wait, but for suspects, and how long batches of them take."""

    waiting: dict[Ticket[Item, Value], None] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)


@dataclass(slots=True, eq=False)
class _Share:
    """What a client has in the queue, and the work it was given since it had something there."""

    given: float
    items: int = 0
    size: int = 0


@dataclass(slots=True, eq=False)
class Ticket(Generic[Item, Value]):
    """A submitted item's place in the queue.

    Attributes:
        entry: The item as submitted.
        submitted_at: Moment of the queue's clock.
    """

    entry: Entry[Item, Value]
    submitted_at: float
    _kind: _Kind[Item, Value]
    _state: _State = field(default=_State.WAITING)
    _deaths: int = 0  # workers that died over a batch with this item

    @property
    def longest_run(self) -> float:
        """Seconds that its batch may take."""
        deadline = self.entry.deadline
        return math.inf if deadline is None else (deadline - self.submitted_at) * _RUN_SHARE


@dataclass(frozen=True, slots=True, eq=False)
class _Suspects(Generic[Item, Value]):
    """Items that are to be run by themselves, since a worker died over them."""

    tickets: Sequence[Ticket[Item, Value]]
    since: float


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
        self._clock = clock
        self._batches = 0
        self._waiting: dict[Ticket[Item, Value], None] = {}  # ordered by arrival, removed from anywhere
        self._waiting_bytes = 0
        self._suspects: deque[_Suspects[Item, Value]] = deque()
        self._kinds: dict[Hashable, _Kind[Item, Value]] = {}
        self._shares: dict[Hashable, _Share] = {}  # of the clients that have something waiting

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def max_items(self) -> int:
        """Most items that wait."""
        return self._max_items

    def submit(self, entries: Sequence[Entry[Item, Value]]) -> list[Ticket[Item, Value]]:
        """Adds all of `entries` or, if they do not fit, none.

        Where the queue is full and another client has more in it than the newcomer would have, the least urgent of that
        client's items make room and are refused instead.

        Args:
            entries: Items of one client.

        Raises:
            QueueFullError: If they do not fit; the message names the limit.
        """
        if not entries:
            return []
        for ticket in self._make_room(entries[0].client, len(entries), sum(entry.size for entry in entries)):
            self._remove(ticket)
            self._settle(ticket, Failed(QueueFullError("the queue is full, and made room for clients with less in it")))
        now = self._clock()
        tickets = [Ticket(entry, now, self._kind(entry.key)) for entry in entries]
        for ticket in tickets:
            self._add(ticket)
            ticket._kind.waiting[ticket] = None
        self._forget_idle_kinds()
        return tickets

    def withdraw(self, ticket: Ticket[Item, Value]) -> None:
        """Settles an item that nobody waits for; nothing happens if it is settled already."""
        if ticket._state is _State.WAITING:
            self._remove(ticket)
        deadline = ticket.entry.deadline
        late = deadline is not None and self._clock() >= deadline - _DEADLINE_TOLERANCE_SECONDS
        self._settle(ticket, Expired() if late else Withdrawn())

    def take(self, workers: int = 1, *, spare: bool = True) -> list[Ticket[Item, Value]]:
        """Removes and returns the next batch, after dropping what has expired.

        The next in turn leads; like items fill the batch: of the higher priorities first, of the lead's width, then of
        the nearest, one of each client in turn.

        Args:
            workers: How many workers are free. What waits is shared between them.
            spare: Whether it would be no disaster if the worker died over the batch.

        Returns:
            Items of one key, within the limits of a batch; none if there is nothing to run now.
        """
        now = self._clock()
        for ticket in [ticket for ticket in self._waiting if _is_too_late(ticket, now)]:
            self._remove(ticket)
            self._settle(ticket, Expired())
        batch = self._take_suspects(now, spare=spare) or self._take_next(workers)
        for ticket in batch:
            self._shares[ticket.entry.client].given += ticket.entry.work
        for ticket in batch:
            self._remove(ticket)
            ticket._state = _State.RUNNING
        return batch

    def observe_run(self, batch: Sequence[Ticket[Item, Value]], seconds: float) -> None:
        """Notes how long a batch took."""
        batch[0]._kind.pace.observe(sum(ticket.entry.work for ticket in batch), seconds)

    def finish(self, ticket: Ticket[Item, Value], value: Value) -> None:
        """Settles a running item with its value."""
        if ticket._state is _State.RUNNING:
            self._settle(ticket, Finished(value))

    def fail(self, ticket: Ticket[Item, Value], error: Exception) -> None:
        """Settles a running item with its batch's error."""
        if ticket._state is _State.RUNNING:
            self._settle(ticket, Failed(error))

    def lose(self, batch: Sequence[Ticket[Item, Value]], error: Exception) -> None:
        """Notes that a worker died over a batch. Its halves wait again, each to be run by itself.

        Args:
            batch: As it was taken.
            error: What the item fails with, if this shows that it is the one that kills workers.
        """
        lost = [ticket for ticket in batch if ticket._state is _State.RUNNING]
        for ticket in lost:
            ticket._deaths += 1
        if len(batch) == 1 and lost and lost[0]._deaths >= _DEATHS_ALONE:
            self._settle(lost[0], Failed(error))
            return
        for ticket in lost:
            ticket._state = _State.WAITING
            self._add(ticket)
        half = math.ceil(len(lost) / 2)
        self._suspects.extend(_Suspects(part, self._clock()) for part in (lost[:half], lost[half:]) if part)

    def fail_waiting(self, error: Exception) -> None:
        """Settles all that waits with an error: the last resort if no batch can be formed."""
        for ticket in list(self._waiting):
            self._remove(ticket)
            self._settle(ticket, Failed(error))

    def _take_suspects(self, now: float, *, spare: bool) -> list[Ticket[Item, Value]]:
        while self._suspects:
            suspects = self._suspects[0]
            waiting = [ticket for ticket in suspects.tickets if ticket in self._waiting]
            if waiting and not spare and now < suspects.since + SUSPECT_PATIENCE_SECONDS:
                break
            self._suspects.popleft()
            if waiting:
                return waiting
        return []

    def _take_next(self, workers: int) -> list[Ticket[Item, Value]]:
        fresh = [ticket for ticket in self._waiting if not ticket._deaths]
        if not fresh:
            return []
        self._batches += 1
        lead = fresh[0] if self._batches % _LONGEST_WAITING_EVERY == 0 else min(fresh, key=self._urgency)
        batch = [lead]
        limit = min(self._limits.items, math.ceil(len(fresh) / workers))
        narrowest = widest = lead.entry.width
        work, pixels, size = lead.entry.work, lead.entry.pixels, lead.entry.size
        longest = lead.longest_run
        for ticket in _in_turn(lead):
            if len(batch) == limit:
                break
            entry = ticket.entry
            low, high = min(narrowest, entry.width), max(widest, entry.width)
            run = min(longest, ticket.longest_run)
            fits = (
                high <= low * (1 + _MAX_PADDING)
                and lead._kind.pace.seconds(work + entry.work) <= run
                and work + entry.work <= self._limits.work
                and pixels + entry.pixels <= self._limits.pixels
                and size + entry.size <= self._limits.size
            )
            if fits:
                batch.append(ticket)
                narrowest, widest, longest = low, high, run
                work, pixels, size = work + entry.work, pixels + entry.pixels, size + entry.size
        return batch

    def _urgency(self, ticket: Ticket[Item, Value]) -> tuple[int, float, float]:
        """What is least is most urgent; of equals, what came first."""
        entry = ticket.entry
        return -entry.priority, self._shares[entry.client].given, _deadline(ticket)

    def _make_room(self, client: Hashable, items: int, size: int) -> list[Ticket[Item, Value]]:
        """Chooses what makes room for a client's items: items of clients with more in the queue than it would have.

        Raises:
            QueueFullError: If they do not fit even so.
        """
        pushed: list[Ticket[Item, Value]] = []
        least_urgent: dict[Hashable, list[Ticket[Item, Value]]] = {}
        own = self._shares.get(client, _Share(0.0))
        held = {each: [share.items, share.size] for each, share in self._shares.items() if each != client}
        want = (own.items + items, own.size + size)
        waiting, waiting_bytes = len(self._waiting), self._waiting_bytes
        while waiting + items > self._max_items or (waiting and waiting_bytes + size > self._max_bytes):
            measure = 0 if waiting + items > self._max_items else 1
            largest = max(held, key=lambda each: held[each][measure], default=None)
            if largest is None or held[largest][measure] <= want[measure]:
                raise self._full(measure)
            if largest not in least_urgent:
                theirs = [ticket for ticket in self._waiting if ticket.entry.client == largest]
                least_urgent[largest] = sorted(theirs, key=lambda ticket: -ticket.entry.priority)
            ticket = least_urgent[largest].pop()
            pushed.append(ticket)
            waiting, waiting_bytes = waiting - 1, waiting_bytes - ticket.entry.size
            held[largest][0] -= 1
            held[largest][1] -= ticket.entry.size
        return pushed

    def _full(self, measure: int) -> QueueFullError:
        if measure == 0:
            return QueueFullError(f"{len(self._waiting)} images are waiting and at most {self._max_items} may")
        return QueueFullError(
            f"images of {self._waiting_bytes} bytes are waiting and at most {self._max_bytes} bytes may"
        )

    def _kind(self, key: Hashable) -> _Kind[Item, Value]:
        kind = self._kinds.pop(key, None) or _Kind()
        self._kinds[key] = kind  # the last used is the last
        return kind

    def _forget_idle_kinds(self) -> None:
        if len(self._kinds) > _MAX_IDLE_KINDS + len(self._waiting):
            idle = [key for key, kind in self._kinds.items() if not kind.waiting]
            for key in idle[:-_MAX_IDLE_KINDS]:
                del self._kinds[key]

    def _add(self, ticket: Ticket[Item, Value]) -> None:
        entry = ticket.entry
        share = self._shares.get(entry.client)
        if share is None:
            # A newcomer is level with whoever was given least: it neither overtakes all nor waits for all.
            share = _Share(min((each.given for each in self._shares.values()), default=0.0))
            self._shares[entry.client] = share
        share.items += 1
        share.size += entry.size
        self._waiting[ticket] = None
        self._waiting_bytes += entry.size

    def _remove(self, ticket: Ticket[Item, Value]) -> None:
        entry = ticket.entry
        del self._waiting[ticket]
        ticket._kind.waiting.pop(ticket, None)  # suspects are not there
        self._waiting_bytes -= entry.size
        share = self._shares[entry.client]
        share.items -= 1
        share.size -= entry.size
        if not share.items:
            del self._shares[entry.client]

    def _settle(self, ticket: Ticket[Item, Value], outcome: Outcome[Value]) -> None:
        if ticket._state is not _State.SETTLED:
            ticket._state = _State.SETTLED
            ticket.entry.settle(outcome)


def _is_too_late(ticket: Ticket[Item, Value], now: float) -> bool:
    if ticket.entry.deadline is None:
        return False
    remaining = ticket.entry.deadline - now
    if remaining <= 0:
        return True
    return remaining < _RUN_MARGIN * min(ticket._kind.pace.longest, ticket.longest_run)


def _in_turn(lead: Ticket[Item, Value]) -> Iterable[Ticket[Item, Value]]:
    """Returns what may share a batch with its lead, in the order in which it does."""
    turns: Counter[Hashable] = Counter({lead.entry.client: 1})
    ranked = []
    for ticket in sorted((each for each in lead._kind.waiting if each is not lead), key=_deadline):
        entry = ticket.entry
        turns[entry.client] += 1
        ranked.append((-entry.priority, abs(entry.width - lead.entry.width), turns[entry.client], ticket))
    ranked.sort(key=lambda each: each[:3])
    return (ticket for *_, ticket in ranked)


def _deadline(ticket: Ticket[Item, Value]) -> float:
    return math.inf if ticket.entry.deadline is None else ticket.entry.deadline
