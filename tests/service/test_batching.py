"""The batcher's core, with a clock that the tests turn."""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from glyphline.service.batching import SUSPECT_PATIENCE_SECONDS, BatchQueue, Ticket
from glyphline.service.entries import BatchLimits, Entry, Expired, Failed, Finished, Outcome, Withdrawn
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
        max_work: int = 10_000,
        max_size: int = 10_000,
    ) -> Queue:
        limits = BatchLimits(items=max_batch, pixels=max_pixels, work=max_work, size=max_size)
        self.queue = BatchQueue(max_items=max_items, max_bytes=max_bytes, limits=limits, clock=self.clock)
        return self.queue

    def entry(
        self,
        name: str,
        *,
        key: str = "model",
        client: str = "somebody",
        width: int = 64,
        work: int = 64,
        pixels: int = 1,
        size: int = 1,
        priority: int = 0,
        deadline: float | None = None,
    ) -> Entry[str, str]:
        received = self.outcomes.setdefault(name, [])
        return Entry(name, key, client, width, work, pixels, size, priority, deadline, received.append)

    def submit(self, name: str, **values: Any) -> QueueTicket:  # noqa: ANN401
        (ticket,) = self.queue.submit([self.entry(name, **values)])
        return ticket

    def call(self, client: str, count: int, **values: Any) -> list[QueueTicket]:  # noqa: ANN401
        """Submits several items of one client at once: a, b, c become a0, a1, …"""
        return self.queue.submit([self.entry(f"{client}{index}", client=client, **values) for index in range(count)])

    def run_batches(self, seconds: float) -> None:
        """Lets the queue see a batch of the usual kind that took so long."""
        ticket = self.submit("measured")
        assert names(self.queue.take()) == ["measured"]
        self.queue.observe_run([ticket], seconds)
        self.queue.finish(ticket, "")


def names(batch: list[QueueTicket]) -> list[str]:
    return [ticket.entry.item for ticket in batch]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_complaint_03_a_lone_item_is_a_batch_at_once(bench: Bench) -> None:
    bench.submit("a")
    assert names(bench.queue.take()) == ["a"]
    assert bench.queue.take() == []


def test_complaint_02_waiting_items_coalesce_up_to_the_largest_batch(bench: Bench) -> None:
    for name in "abcdefghi":
        bench.submit(name)
    assert [names(bench.queue.take()) for _ in range(4)] == [list("abcd"), list("efgh"), ["i"], []]


@pytest.mark.parametrize("bound", ["pixels", "work", "size"])
def test_a_batch_is_bounded_by_what_it_costs(bench: Bench, bound: str) -> None:
    bench.make_queue(**{"max_batch": 32, f"max_{bound}": 200})
    for name, value in {"a": 100, "b": 90, "c": 100, "d": 80}.items():
        bench.submit(name, **{bound: value})
    bench.submit("beyond", **{bound: 500})
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


def test_within_a_priority_the_nearest_deadline_goes_first(bench: Bench) -> None:
    bench.make_queue(max_batch=1)
    for name, deadline in {"whenever": None, "later": 9.0, "soon": 5.0}.items():
        bench.submit(name, deadline=deadline)
    bench.submit("urgent", priority=1)
    assert [names(bench.queue.take()) for _ in range(3)] == [["urgent"], ["soon"], ["later"]]


def test_a_batch_takes_the_higher_priorities_first_then_its_own_width_then_clients_in_turn(bench: Bench) -> None:
    bench.make_queue(max_batch=5)
    bench.call("a", 4)
    bench.call("b", 2)
    bench.submit("near", width=80)
    bench.submit("urgent", priority=1, width=80)
    bench.submit("most urgent", priority=2)
    assert names(bench.queue.take()) == ["most urgent", "urgent", "a0", "b0", "a1"]


def test_who_asks_little_does_not_wait_for_who_asks_much(bench: Bench) -> None:
    bench.make_queue(max_items=2000, max_batch=8)
    bench.call("greedy", 1000)
    bench.queue.take()
    for turn in range(20):
        bench.submit(f"call {turn}", client="modest", width=640, work=640)  # of another width: it must lead by itself
        batches = names(bench.queue.take()) + names(bench.queue.take())
        assert f"call {turn}" in batches


@pytest.mark.parametrize(("client", "deadline"), [("a", 0.5), ("a", None)])
def test_no_deadline_buys_a_place_before_other_clients(bench: Bench, client: str, deadline: float | None) -> None:
    bench.make_queue(max_batch=1)
    bench.call(client, 4, deadline=deadline)
    bench.call("b", 4)
    assert sorted(names([*bench.queue.take(), *bench.queue.take()])) == ["a0", "b0"]


@given(works=st.lists(st.integers(1, 9), min_size=2, max_size=4))
@settings(max_examples=30, deadline=None)
def test_clients_that_wait_are_given_equal_work_whatever_their_images_cost(works: list[int]) -> None:
    bench = Bench()
    bench.make_queue(max_items=1000, max_batch=4, max_work=20)
    for client, work in enumerate(works):
        bench.call(str(client), 80, work=work, width=64 * 2**client)  # no two share a batch
    given_work: Counter[str] = Counter()
    for turn in range(1, 20):
        for ticket in bench.queue.take():
            given_work[str(ticket.entry.client)] += ticket.entry.work
        if turn % 4:  # every fourth is led by what has waited longest
            totals = [given_work[str(client)] for client in range(len(works))]
            assert max(totals) - min(totals) <= 20 * (2 + turn // 4)


def test_a_full_queue_makes_room_for_clients_with_less_in_it(bench: Bench) -> None:
    bench.make_queue(max_items=8, max_batch=8)
    bench.call("a", 7)
    bench.submit("urgent", client="a", priority=1)
    bench.call("b", 3)  # a's last of the lowest priority go
    assert [name for name in bench.outcomes if bench.outcomes[name]] == ["a4", "a5", "a6"]
    (outcome,) = bench.outcomes["a6"]
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, QueueFullError)
    with pytest.raises(QueueFullError, match="at most 8"):
        bench.call("b", 2)  # b would have as many as a
    with pytest.raises(QueueFullError, match="at most 8"):
        bench.call("c", 6)
    assert len(bench.queue) == 8
    assert sorted(names(bench.queue.take())) == ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "urgent"]


def test_room_is_made_in_bytes_too(bench: Bench) -> None:
    bench.make_queue(max_bytes=100)
    bench.call("a", 2, size=45)
    bench.call("c", 1, size=5)
    bench.submit("b", client="b", size=40)
    assert [name for name in bench.outcomes if bench.outcomes[name]] == ["a1"]
    with pytest.raises(QueueFullError, match="bytes"):
        bench.submit("d", client="d", size=60)


def test_kinds_that_nobody_uses_are_forgotten(bench: Bench) -> None:
    for index in range(2000):
        bench.submit("a", key=str(index))
        bench.queue.take()
    assert len(bench.queue._kinds) <= 260


def test_complaint_13_a_full_queue_refuses_at_once_and_takes_all_or_none(bench: Bench) -> None:
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


def test_complaint_10_an_expired_item_is_never_taken(bench: Bench) -> None:
    bench.submit("late", deadline=1.0)
    bench.submit("fresh", deadline=5.0)
    bench.clock.now = 1.0
    assert names(bench.queue.take()) == ["fresh"]
    assert bench.outcomes["late"] == [Expired()]


def test_what_would_expire_while_it_is_run_is_not_begun(bench: Bench) -> None:
    bench.run_batches(1.0)
    bench.submit("late", deadline=3.9)
    bench.submit("other", key="another model", deadline=3.9)
    bench.clock.now = 2.0  # both have waited, and 1.9 s are left
    bench.submit("new", deadline=3.9)
    bench.submit("patient", deadline=9.0)
    assert names(bench.queue.take()) == ["other"]
    assert bench.outcomes["late"] == [Expired()]
    assert names(bench.queue.take()) == ["new"]  # what has not waited for a third of its time gets its chance
    assert names(bench.queue.take()) == ["patient"]


def test_a_batch_takes_no_more_than_a_third_of_the_time_that_its_callers_gave(bench: Bench) -> None:
    bench.make_queue(max_batch=32)
    for count in (1, 2, 3):  # of which each item takes a second
        batch = bench.call("measured", count)
        bench.queue.observe_run(bench.queue.take(), float(count))
        for ticket in batch:
            bench.queue.finish(ticket, "")
    bench.call("a", 20, deadline=12.0)
    bench.call("b", 20)
    assert len(bench.queue.take()) == 4
    bench.call("c", 1, deadline=3.0)
    assert names(bench.queue.take()) == ["c0"]


@given(patience=st.floats(0.01, 100.0), taken=st.floats(0.01, 100.0), waits=st.floats(0.0, 0.33))
@settings(max_examples=50, deadline=None)
def test_what_has_not_waited_for_a_third_of_its_time_is_never_too_late(
    patience: float, taken: float, waits: float
) -> None:
    bench = Bench()
    bench.run_batches(taken)
    bench.submit("a", deadline=patience)
    bench.clock.now = waits * patience
    assert names(bench.queue.take()) == ["a"]


def test_a_lone_item_gets_its_chance_however_short_its_deadline(bench: Bench) -> None:
    bench.run_batches(60.0)
    bench.submit("hurried", deadline=0.001)
    assert names(bench.queue.take()) == ["hurried"]


def test_complaint_10_a_withdrawn_item_is_never_taken_and_frees_its_place(bench: Bench) -> None:
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


def test_complaint_06_one_withdrawn_in_the_middle_of_a_batch_harms_no_other(bench: Bench) -> None:
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


@dataclass
class Served:
    """What became of an item of a simulation, with the moments at which it came, was begun and was done."""

    ticket: QueueTicket
    begun: float
    done: float
    ahead: int


def simulate(
    bench: Bench,
    arrivals: Iterable[tuple[float, dict[str, Any]]],
    seconds: Callable[[int], float],
    *,
    workers: int = 1,
) -> list[Served]:
    """Runs the queue on the bench's clock: items come at given moments, and a batch takes as long as its size says."""
    events: list[tuple[float, int, Any]] = [(at, index, values) for index, (at, values) in enumerate(arrivals)]
    heapq.heapify(events)
    served, ahead, count, idle = [], {}, len(events), workers
    while events:
        bench.clock.now, index, what = heapq.heappop(events)
        if isinstance(what, dict):
            before = len(bench.queue)
            try:
                ahead[bench.submit(str(index), **what)] = before
            except QueueFullError:
                bench.outcomes[str(index)].append(Failed(QueueFullError()))
        else:
            batch, begun = what
            idle += 1
            bench.queue.observe_run(batch, bench.clock.now - begun)
            for ticket in batch:
                bench.queue.finish(ticket, ticket.entry.item)
                served.append(Served(ticket, begun, bench.clock.now, ahead[ticket]))
        while idle and (batch := bench.queue.take(idle)):
            idle -= 1
            count += 1
            heapq.heappush(events, (bench.clock.now + seconds(len(batch)), count, (batch, bench.clock.now)))
    return served


def poisson(rate: float, seconds: float, chance: random.Random, patience: float | None = None) -> list[Any]:
    """Moments of arrivals that do not wait for answers."""
    arrivals, now = [], 0.0
    while (now := now + chance.expovariate(rate)) < seconds:
        arrivals.append((now, {"deadline": None if patience is None else now + patience}))
    return arrivals


@given(seed=st.integers(0, 1000), load=st.floats(0.1, 1.5), workers=st.integers(1, 3))
@settings(max_examples=12, deadline=None)
def test_complaint_01_the_wait_is_bounded_however_requests_are_spread(seed: int, load: float, workers: int) -> None:
    """Under a Poisson load an item waits for the batches of those before it, and never for a timer."""
    bench = Bench()
    bench.make_queue(max_items=10_000, max_batch=8)
    longest, chance = 0.13, random.Random(seed)  # of a batch of 8: 61 items a second
    arrivals = poisson(load * workers * 61, 2.0, chance)
    served = simulate(bench, arrivals, lambda size: 0.05 + 0.01 * size, workers=workers)
    assert len(served) == len(arrivals)
    for each in served:
        assert each.begun - each.ticket.submitted_at <= (each.ahead // 8 + 1) * longest + 1e-9


@pytest.mark.parametrize(("clients", "patience", "share"), [(1, 1.0, 0.9), (5, 1.0, 0.9), (1, 0.4, 0.7)])
def test_complaint_16_at_three_times_capacity_work_is_done_for_those_who_still_wait(
    clients: int, patience: float, share: float
) -> None:
    """Nearly all that can be done is done in time, and after the storm everybody is answered.

    Where callers wait for no longer than three full batches take, batches are smaller, and less can be done.
    """
    bench, chance = Bench(), random.Random(0)
    bench.make_queue(max_items=1000, max_batch=8)
    storm = poisson(3 * 123, 8.0, chance, patience=patience)
    calm = [(at + 9.0, {"deadline": at + 10.0}) for at, _ in poisson(0.5 * 123, 3.0, chance)]
    arrivals = [(at, values | {"client": str(chance.randrange(clients))}) for at, values in storm + calm]
    served = simulate(bench, arrivals, lambda size: (0.05 + 0.01 * size) * chance.uniform(0.7, 1.3), workers=2)
    in_time = [each for each in served if each.done <= (each.ticket.entry.deadline or math.inf)]
    of_storm = [each for each in in_time if each.ticket.submitted_at < 8.0]
    assert len(of_storm) >= share * 8 * 123
    assert len(in_time) >= 0.98 * len(served)
    assert len([each for each in in_time if each.ticket.submitted_at > 9.0]) == len(calm)
    assert all(len(outcomes) == 1 for outcomes in bench.outcomes.values())


def test_complaint_14_without_deadlines_nothing_is_shed_however_long_batches_take(bench: Bench) -> None:
    """Only the bound of the queue and the caller's own deadline refuse anything; no guess of a wait does."""
    bench.run_batches(3600.0)
    bench.call("a", 50)
    bench.clock.now += 36_000.0
    taken = []
    while batch := bench.queue.take():
        taken += names(batch)
        bench.clock.now += 3600.0
        bench.queue.observe_run(batch, 3600.0)
    assert len(taken) == 50


def test_a_batch_over_which_a_worker_died_is_run_again_in_halves(bench: Bench) -> None:
    fatal = RuntimeError("fatal")
    bench.call("a", 4)
    batch = bench.queue.take()
    bench.submit("bystander")
    bench.queue.lose(batch, fatal)
    assert len(bench.queue) == 5
    good = bench.queue.take()
    assert names(good) == ["a0", "a1"]
    bad = bench.queue.take()
    assert names(bad) == ["a2", "a3"]
    assert names(bench.queue.take()) == ["bystander"]
    for ticket in good:
        bench.queue.finish(ticket, "")
    bench.queue.lose(bad, fatal)
    bench.queue.lose(bench.queue.take(), fatal)
    for ticket in bench.queue.take():
        bench.queue.finish(ticket, "")
    assert len(bench.queue) == 0
    assert bench.outcomes["a2"] == [Failed(fatal)]
    assert all(bench.outcomes[f"a{index}"] == [Finished("")] for index in (0, 1, 3))


def test_a_lone_item_is_run_again_once(bench: Bench) -> None:
    error = RuntimeError("fatal")
    bench.submit("a")
    bench.queue.lose(bench.queue.take(), error)
    bench.queue.lose(bench.queue.take(), error)
    assert bench.queue.take() == []
    assert bench.outcomes["a"] == [Failed(error)]


def test_suspects_wait_for_a_second_worker_but_not_for_ever(bench: Bench) -> None:
    bench.submit("suspect")
    bench.queue.lose(bench.queue.take(), RuntimeError())
    assert bench.queue.take(spare=False) == []
    bench.submit("other")
    assert names(bench.queue.take(spare=False)) == ["other"]
    bench.clock.now += SUSPECT_PATIENCE_SECONDS
    assert names(bench.queue.take(spare=False)) == ["suspect"]


def test_suspects_may_leave_expire_and_be_pushed_out(bench: Bench) -> None:
    bench.make_queue(max_items=3)
    leaver = bench.submit("leaves")
    bench.submit("expires", deadline=1.0)
    bench.submit("pushed out")
    bench.queue.lose(bench.queue.take(), RuntimeError())
    bench.submit("b", client="b")
    bench.queue.withdraw(leaver)
    bench.clock.now = 2.0
    assert names(bench.queue.take()) == ["b"]
    assert [type(bench.outcomes[name][0]) for name in ("leaves", "expires", "pushed out")] == [
        Withdrawn,
        Expired,
        Failed,
    ]


@given(count=st.integers(1, 32), data=st.data())
@settings(max_examples=60, deadline=None)
def test_items_that_kill_workers_are_found_and_no_others(count: int, data: st.DataObject) -> None:
    fatal = {str(index) for index in data.draw(st.sets(st.integers(0, count - 1), max_size=3))}
    bench = Bench()
    bench.make_queue(max_batch=32)
    for index in range(count):
        bench.submit(str(index))
    deaths: Counter[str] = Counter()
    while batch := bench.queue.take():
        if fatal & set(names(batch)):
            deaths.update(names(batch))
            bench.queue.lose(batch, RuntimeError())
        else:
            for ticket in batch:
                bench.queue.finish(ticket, ticket.entry.item)
    for name, outcomes in bench.outcomes.items():
        assert [type(outcome) for outcome in outcomes] == [Failed if name in fatal else Finished]
    assert max(deaths.values(), default=0) <= 2 + math.ceil(math.log2(count))


def test_what_cannot_be_batched_fails_rather_than_waits_for_ever(bench: Bench) -> None:
    error = RuntimeError()
    bench.call("a", 2)
    bench.queue.fail_waiting(error)
    assert len(bench.queue) == 0
    assert bench.outcomes == {"a0": [Failed(error)], "a1": [Failed(error)]}


class EveryItemLeavesOnce(RuleBasedStateMachine):
    """Whatever happens in whatever order, every item gets exactly one outcome, and it is its own."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.queue = self.bench.make_queue(max_items=12, max_bytes=60, max_batch=3)
        self.waiting: list[QueueTicket] = []
        self.running: list[list[QueueTicket]] = []
        self.deaths: Counter[str] = Counter()
        self.count = 0

    @rule(
        keys=st.lists(st.sampled_from("xy"), min_size=1, max_size=6),
        client=st.sampled_from("abc"),
        width=st.sampled_from([32, 48, 64, 80]),
        size=st.integers(1, 9),
        priority=st.integers(-1, 1),
        patience=st.none() | st.floats(0, 4),
    )
    def submit(
        self, keys: list[str], client: str, width: int, size: int, priority: int, patience: float | None
    ) -> None:
        entries = []
        for key in keys:
            self.count += 1
            deadline = None if patience is None else self.bench.clock.now + patience
            name = str(self.count)
            entry = self.bench.entry(
                name, key=key, client=client, width=width, size=size, priority=priority, deadline=deadline
            )
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

    @rule(workers=st.integers(1, 3), spare=st.booleans())
    def take(self, workers: int, spare: bool) -> None:
        batch = self.queue.take(workers, spare=spare)
        assert len(batch) <= 3
        assert len({ticket.entry.key for ticket in batch}) <= 1
        for ticket in batch:
            assert self.bench.outcomes[ticket.entry.item] == []
            assert ticket.entry.deadline is None or ticket.entry.deadline > self.bench.clock.now
        if batch:
            self.running.append(batch)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), how=st.sampled_from(["finishes", "fails", "dies"]), settled=st.integers(0, 3))
    def end(self, data: st.DataObject, how: str, settled: int) -> None:
        batch = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        for ticket in batch[: None if how == "finishes" else settled]:
            self.queue.finish(ticket, f"of {ticket.entry.item}")
        if how == "dies":
            self.deaths.update(names(batch))
            self.queue.lose(batch, RuntimeError())
            assert max(self.deaths.values()) <= 3  # of a batch of three, of two, alone
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


EveryItemLeavesOnce.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestEveryItemLeavesOnce = EveryItemLeavesOnce.TestCase
