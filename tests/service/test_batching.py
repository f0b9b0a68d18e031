"""The batcher's core, with a clock that the tests turn."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from glyphline.service.batching import (
    BatchLimits,
    BatchQueue,
    Entry,
    Expired,
    Failed,
    Finished,
    Outcome,
    Ticket,
    Withdrawn,
)
from glyphline.service.errors import QueueFullError

Queue = BatchQueue[str, str]
QueueTicket = Ticket[str, str]


@dataclass
class Clock:
    """A clock that stands still until it is turned."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Bench:
    """A queue, its clock, and what became of each item."""

    clock: Clock = field(default_factory=Clock)
    outcomes: dict[str, list[Outcome[str]]] = field(default_factory=dict)
    queue: Queue = field(init=False)

    def __post_init__(self) -> None:
        self.queue = self.make_queue()

    def make_queue(
        self,
        *,
        max_items: int = 100,
        max_bytes: int = 10_000,
        max_batch: int = 4,
        max_pixels: int = 10_000,
        max_columns: int = 10_000,
        max_size: int = 10_000,
    ) -> Queue:
        limits = BatchLimits(items=max_batch, pixels=max_pixels, columns=max_columns, size=max_size)
        self.queue = BatchQueue(max_items=max_items, max_bytes=max_bytes, limits=limits, clock=self.clock)
        return self.queue

    def entry(
        self,
        name: str,
        *,
        key: str = "model",
        width: int = 64,
        pixels: int = 1,
        size: int = 1,
        priority: int = 0,
        deadline: float | None = None,
    ) -> Entry[str, str]:
        received = self.outcomes.setdefault(name, [])
        return Entry(name, key, width, pixels, size, priority, deadline, received.append)

    def submit(
        self,
        name: str,
        *,
        key: str = "model",
        width: int = 64,
        pixels: int = 1,
        size: int = 1,
        priority: int = 0,
        deadline: float | None = None,
    ) -> QueueTicket:
        entry = self.entry(name, key=key, width=width, pixels=pixels, size=size, priority=priority, deadline=deadline)
        (ticket,) = self.queue.submit([entry])
        return ticket


def names(batch: list[QueueTicket]) -> list[str]:
    return [ticket.entry.item for ticket in batch]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_lone_item_is_a_batch_at_once(bench: Bench) -> None:
    bench.submit("a")
    assert names(bench.queue.take()) == ["a"]
    assert bench.queue.take() == []


def test_waiting_items_coalesce_up_to_the_largest_batch(bench: Bench) -> None:
    for name in "abcdefghi":
        bench.submit(name)
    assert [names(bench.queue.take()) for _ in range(4)] == [list("abcd"), list("efgh"), ["i"], []]


@pytest.mark.parametrize("bound", ["pixels", "columns", "size"])
def test_a_batch_is_bounded_by_what_it_costs(bench: Bench, bound: str) -> None:
    bench.make_queue(**{"max_batch": 32, f"max_{bound}": 200})
    cost = {"columns": "width"}.get(bound, bound)
    for name, value in {"a": 100, "b": 90, "c": 100, "d": 80}.items():
        bench.submit(name, **{cost: value})  # type: ignore[arg-type]
    bench.submit("beyond", **{cost: 500})  # type: ignore[arg-type]
    batches = [sorted(names(bench.queue.take())) for _ in range(4)]
    assert sorted(name for batch in batches for name in batch) == ["a", "b", "beyond", "c", "d"]
    assert sorted(map(len, batches)) == [0, 1, 2, 2]
    assert ["beyond"] in batches  # alone, however large


def test_the_urgent_goes_between_the_batches_of_one_call(bench: Bench) -> None:
    """A call of many heavy images, none of which shares a batch: what is urgent waits for one of them at most."""
    bench.make_queue(max_pixels=100)
    bench.queue.submit([bench.entry(f"heavy {index}", pixels=100) for index in range(64)])
    assert names(bench.queue.take()) == ["heavy 0"]
    bench.clock.now = 0.8
    bench.submit("urgent", priority=1, pixels=1)
    assert names(bench.queue.take()) == ["urgent"]
    assert names(bench.queue.take()) == ["heavy 1"]


def test_what_waits_is_shared_between_free_workers(bench: Bench) -> None:
    for name in "abcdef":
        bench.submit(name)
    assert names(bench.queue.take(2)) == list("abc")
    assert names(bench.queue.take(1)) == list("def")


def test_only_items_of_one_key_share_a_batch(bench: Bench) -> None:
    bench.submit("a", key="greedy")
    bench.submit("b", key="beam")
    bench.submit("c", key="greedy")
    assert names(bench.queue.take()) == ["a", "c"]
    assert names(bench.queue.take()) == ["b"]


def test_widths_within_a_quarter_share_a_batch_own_width_first(bench: Bench) -> None:
    bench.submit("lead", width=64)
    bench.submit("wide", width=96)
    bench.submit("near", width=80)
    bench.submit("same", width=64)
    bench.submit("narrow", width=48)
    assert names(bench.queue.take()) == ["lead", "same", "near"]
    assert names(bench.queue.take()) == ["wide"]
    assert names(bench.queue.take()) == ["narrow"]


def test_neighbours_do_not_stretch_a_batch_step_by_step(bench: Bench) -> None:
    for width in (64, 80, 96, 112):
        bench.submit(str(width), width=width)
    assert names(bench.queue.take()) == ["64", "80"]


def test_the_higher_priority_goes_first_and_equals_go_by_arrival(bench: Bench) -> None:
    bench.make_queue(max_batch=1)
    bench.submit("low", priority=-1)
    bench.submit("first")
    bench.submit("second")
    bench.submit("high", priority=1)
    assert [names(bench.queue.take()) for _ in range(4)] == [["high"], ["first"], ["second"], ["low"]]


def test_every_fourth_batch_goes_to_the_longest_waiting_so_that_none_starves(bench: Bench) -> None:
    bench.make_queue(max_batch=1)
    bench.submit("low", priority=-1)
    for name in "abcdef":
        bench.submit(name)
    taken = []
    for _ in range(5):
        taken += names(bench.queue.take())
        bench.clock.now += 60.0
    assert taken == ["a", "b", "c", "low", "d"]


def test_the_urgent_waits_for_no_backlog_however_old(bench: Bench) -> None:
    bench.make_queue(max_batch=1)
    for index in range(50):
        bench.submit(f"old {index}")
    bench.clock.now = 600.0
    for turn in range(12):
        bench.submit(f"urgent {turn}", priority=1)
        batches = names(bench.queue.take()) + names(bench.queue.take())
        assert f"urgent {turn}" in batches


def test_a_full_queue_refuses_at_once_and_takes_all_or_none(bench: Bench) -> None:
    bench.make_queue(max_items=3)
    bench.submit("a")
    bench.submit("b")
    with pytest.raises(QueueFullError, match="at most 3"):
        bench.queue.submit([bench.entry("c"), bench.entry("d")])
    assert len(bench.queue) == 2
    bench.submit("c")
    assert names(bench.queue.take()) == ["a", "b", "c"]


def test_the_bound_holds_for_bytes_too_but_an_empty_queue_takes_anything(bench: Bench) -> None:
    bench.make_queue(max_bytes=10)
    bench.submit("huge", size=50)
    with pytest.raises(QueueFullError, match="bytes"):
        bench.submit("tiny", size=1)
    bench.queue.take()
    bench.submit("tiny", size=1)
    assert len(bench.queue) == 1


def test_an_expired_item_is_never_taken(bench: Bench) -> None:
    bench.submit("late", deadline=1.0)
    bench.submit("fresh", deadline=5.0)
    bench.clock.now = 1.0
    assert names(bench.queue.take()) == ["fresh"]
    assert bench.outcomes["late"] == [Expired()]


def test_what_would_expire_while_it_is_run_is_not_begun(bench: Bench) -> None:
    bench.queue.observe_run("model", 1.0)
    bench.submit("late", deadline=3.4)
    bench.submit("other", key="another model", deadline=3.4)
    bench.clock.now = 2.0  # both have waited, and 1.4 s are left
    bench.submit("new", deadline=3.4)
    bench.submit("patient", deadline=9.0)
    assert names(bench.queue.take()) == ["other"]
    assert bench.outcomes["late"] == [Expired()]
    assert names(bench.queue.take()) == ["new", "patient"]  # what has not waited gets its chance


def test_a_lone_item_gets_its_chance_however_short_its_deadline(bench: Bench) -> None:
    bench.queue.observe_run("model", 60.0)
    bench.submit("hurried", deadline=0.001)
    assert names(bench.queue.take()) == ["hurried"]


def test_under_overload_work_is_done_for_those_who_still_wait(bench: Bench) -> None:
    """Three times as much is asked as can be done, each within a second; nearly all that is done is in time."""
    bench.make_queue(max_items=1000, max_batch=8)
    in_time = done = 0
    for _ in range(200):
        for _ in range(24):
            bench.submit(f"{bench.clock.now}", deadline=bench.clock.now + 1.0)
        batch = bench.queue.take()
        bench.clock.now += 0.1  # the time of a batch
        bench.queue.observe_run("model", 0.1)
        for ticket in batch:
            done += 1
            in_time += ticket.entry.deadline is not None and bench.clock.now <= ticket.entry.deadline
            bench.queue.finish(ticket, "")
    assert done == 8 * 200
    assert in_time == done


def test_a_withdrawn_item_is_never_taken_and_frees_its_place(bench: Bench) -> None:
    bench.make_queue(max_items=1)
    bench.queue.withdraw(bench.submit("a", deadline=9.0))
    bench.submit("b")
    assert names(bench.queue.take()) == ["b"]
    assert bench.outcomes["a"] == [Withdrawn()]


def test_a_withdrawal_at_the_deadline_counts_as_expiry(bench: Bench) -> None:
    ticket = bench.submit("a", deadline=1.0)
    bench.clock.now = 0.99  # the caller's own timer ends a little before the server's
    bench.queue.withdraw(ticket)
    assert bench.outcomes["a"] == [Expired()]


def test_one_withdrawn_in_the_middle_of_a_batch_harms_no_other(bench: Bench) -> None:
    tickets = [bench.submit(name) for name in "abcd"]
    batch = bench.queue.take()
    bench.queue.withdraw(tickets[1])
    for ticket in batch:
        bench.queue.finish(ticket, ticket.entry.item.upper())
    assert bench.outcomes == {
        "a": [Finished("A")],
        "b": [Withdrawn()],
        "c": [Finished("C")],
        "d": [Finished("D")],
    }


def test_a_failed_batch_fails_only_what_is_not_settled(bench: Bench) -> None:
    for name in "ab":
        bench.submit(name)
    first, second = bench.queue.take()
    error = RuntimeError("lost")
    bench.queue.finish(first, "A")
    for ticket in (first, second):
        bench.queue.fail(ticket, error)
    assert bench.outcomes == {"a": [Finished("A")], "b": [Failed(error)]}


class EveryItemLeavesOnce(RuleBasedStateMachine):
    """Whatever happens in whatever order, every item gets exactly one outcome, and it is its own."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.queue = self.bench.make_queue(max_items=12, max_bytes=60, max_batch=3)
        self.waiting: list[QueueTicket] = []
        self.running: list[list[QueueTicket]] = []
        self.count = 0

    @rule(
        keys=st.lists(st.sampled_from("xy"), min_size=1, max_size=6),
        width=st.sampled_from([32, 48, 64, 80]),
        size=st.integers(1, 9),
        priority=st.integers(-1, 1),
        patience=st.none() | st.floats(0, 4),
    )
    def submit(self, keys: list[str], width: int, size: int, priority: int, patience: float | None) -> None:
        entries = []
        for key in keys:
            self.count += 1
            deadline = None if patience is None else self.bench.clock.now + patience
            name = str(self.count)
            entry = self.bench.entry(name, key=key, width=width, size=size, priority=priority, deadline=deadline)
            entries.append(entry)
        before = len(self.queue)
        try:
            self.waiting += self.queue.submit(entries)
        except QueueFullError:
            assert len(self.queue) == before
            for entry in entries:
                del self.bench.outcomes[entry.item]

    @rule(seconds=st.floats(0, 3))
    def wait(self, seconds: float) -> None:
        self.bench.clock.now += seconds

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        self.queue.withdraw(data.draw(st.sampled_from(self.waiting)))

    @rule(workers=st.integers(1, 3))
    def take(self, workers: int) -> None:
        batch = self.queue.take(workers)
        assert len(batch) <= 3
        assert len({ticket.entry.key for ticket in batch}) <= 1
        for ticket in batch:
            assert self.bench.outcomes[ticket.entry.item] == []
            assert ticket.entry.deadline is None or ticket.entry.deadline > self.bench.clock.now
        if batch:
            self.running.append(batch)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), fails=st.booleans(), settled=st.integers(0, 3))
    def end(self, data: st.DataObject, fails: bool, settled: int) -> None:
        batch = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        for ticket in batch[: settled if fails else None]:
            self.queue.finish(ticket, f"of {ticket.entry.item}")
        for ticket in batch:
            self.queue.fail(ticket, RuntimeError())

    @invariant()
    def nobody_gets_two_outcomes_or_anothers(self) -> None:
        for name, outcomes in self.bench.outcomes.items():
            assert len(outcomes) <= 1
            for outcome in outcomes:
                assert not isinstance(outcome, Finished) or outcome.value == f"of {name}"
        assert len(self.queue) <= 12

    def teardown(self) -> None:
        while batch := self.queue.take():
            self.running.append(batch)
        for batch in self.running:
            for ticket in batch:
                self.queue.finish(ticket, f"of {ticket.entry.item}")
        assert len(self.queue) == 0
        assert all(len(outcomes) == 1 for outcomes in self.bench.outcomes.values())


EveryItemLeavesOnce.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestEveryItemLeavesOnce = EveryItemLeavesOnce.TestCase
