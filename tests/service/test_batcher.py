"""The batcher with workers that read when the test says so, on a clock that the test turns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.decoding.readings import Alternative, Reading
from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.service.batcher import Batcher, Done, Item, Reader
from glyphline.service.batching import BatchQueue
from glyphline.service.catalogue import ServedModel
from glyphline.service.entries import BatchLimits, Expired, Failed, Finished, Outcome, Withdrawn
from glyphline.service.errors import FatalImageError, InternalError, QueueFullError, WorkerLostError
from glyphline.service.messages import Fault, Job, JobResult, ModelKey
from glyphline.service.metrics import Metrics

MODEL = ServedModel.of(load_bundle(ModelRepository([pretrained_root()]).resolve("digits")))
SECONDS = 30.0


def reading(text: str) -> Reading:
    """What a worker reads: here, the image's own bytes."""
    return Reading(text, 1.0, (Alternative(text, 1.0, 0.0, (), False),), False)


@dataclass
class Run:
    """A batch that a worker holds until the test ends it."""

    job: Job
    ended: asyncio.Future[JobResult]

    @property
    def names(self) -> list[str]:
        return [image.decode() for image in self.job.images]

    def finish(self) -> None:
        outcomes: list[Reading | Exception | Fault] = [reading(name) for name in self.names]
        self.ended.set_result(JobResult(outcomes, 0.1))  # type: ignore[arg-type]

    def raise_error(self, error: Exception) -> None:
        self.ended.set_exception(error)


@dataclass
class GatedWorker:
    """A worker that keeps every batch until it is told what becomes of it."""

    index: int
    runs: list[Run]
    providers: dict[ModelKey, str] = field(default_factory=lambda: {(MODEL.name, MODEL.version): "Test"})

    async def run(self, job: Job, seconds: float) -> JobResult:
        assert seconds == SECONDS
        self.runs.append(Run(job, asyncio.get_running_loop().create_future()))
        return await self.runs[-1].ended


class Gate:
    """Workers, their batcher, its clock, and everything that was ever run."""

    def __init__(self, workers: int = 1, *, max_batch: int = 4, max_queue: int = 1000) -> None:
        self.now = 0.0
        self.runs: list[Run] = []
        self.members = [GatedWorker(index, self.runs) for index in range(workers)]
        self.free: list[Reader] = list(self.members)
        self.living = self.size = workers
        self.metrics = Metrics()
        limits = BatchLimits(items=max_batch, pixels=10**9, work=10**9, size=10**9)
        self.queue: BatchQueue[Item, Done] = BatchQueue(
            max_items=max_queue, max_bytes=10**9, limits=limits, clock=lambda: self.now
        )
        self.batcher = Batcher(self.queue, self.metrics, batch_seconds=SECONDS, clock=lambda: self.now)
        self.batcher.attach(self)

    @property
    def idle(self) -> int:
        return len(self.free)

    def acquire(self) -> Reader | None:
        return self.free.pop() if self.free else None

    def release(self, member: Reader) -> None:
        self.free.append(member)
        self.batcher.schedule()

    def read(self, *names: str, client: str = "c", deadline: float | None = None) -> asyncio.Task[list[Outcome[Done]]]:
        """Begins a call."""
        items = [
            Item(name, client, name.encode(), MODEL, DecodingOptions(), "greedy", 64, 64, 1, 0, deadline, None)
            for name in names
        ]
        return asyncio.create_task(self.batcher.read(items))

    async def settle(self) -> None:
        """Lets everything happen that can without the workers."""
        for _ in range(12):
            await asyncio.sleep(0)

    @property
    def running(self) -> list[Run]:
        return [run for run in self.runs if not run.ended.done()]

    async def finish_all(self) -> None:
        """Lets the workers read until nothing waits."""
        await self.settle()
        while self.running:
            for run in self.running:
                run.finish()
            await self.settle()

    def counts(self) -> dict[str, int]:
        """Images by outcome, as the metrics count them."""
        (family,) = self.metrics.images.collect()
        samples = [sample for sample in family.samples if sample.name.endswith("_total") and sample.value]
        return {sample.labels["outcome"]: int(sample.value) for sample in samples}

    def rejected(self, reason: str) -> float:
        """Refusals by reason, as the metrics count them."""
        return self.metrics.registry.get_sample_value("glyphline_rejected_total", {"reason": reason}) or 0.0


def texts(outcomes: list[Outcome[Done]]) -> list[str]:
    """What was read; fails unless everything was."""
    found = []
    for outcome in outcomes:
        assert isinstance(outcome, Finished)
        assert isinstance(outcome.value.result, Reading)
        found.append(outcome.value.result.text)
    return found


@pytest.mark.parametrize(("count", "runs"), [(1, 1), (4, 1), (5, 2), (23, 6)])
async def test_complaint_02_what_waits_while_a_worker_is_busy_coalesces(count: int, runs: int) -> None:
    """N that wait become ceil(N / largest batch) runs."""
    gate = Gate()
    first = gate.read("first")
    await gate.settle()
    calls = [gate.read(str(index)) for index in range(count)]
    await gate.finish_all()
    assert len(gate.runs) == 1 + runs
    assert texts(await first) == ["first"]
    assert [texts(await call) for call in calls] == [[str(index)] for index in range(count)]


async def test_complaint_03_a_lone_request_is_run_at_once_and_alone() -> None:
    """No timer holds it back: the clock does not move."""
    gate = Gate()
    call = gate.read("lone")
    await gate.settle()
    assert [run.names for run in gate.runs] == [["lone"]]
    gate.runs[0].finish()
    (outcome,) = await call
    assert isinstance(outcome, Finished)
    assert outcome.value.batch_size == 1
    assert outcome.value.queue_seconds == 0.0


async def test_complaint_05_of_many_callers_each_gets_its_own() -> None:
    gate = Gate(workers=3)
    calls = [gate.read(f"{caller}a", f"{caller}b", client=str(caller % 7)) for caller in range(200)]
    await gate.finish_all()
    for caller, call in enumerate(calls):
        assert texts(await call) == [f"{caller}a", f"{caller}b"]


async def test_complaint_06_one_that_leaves_in_the_middle_of_a_batch_harms_no_other() -> None:
    gate = Gate()
    calls = [gate.read(name) for name in "abcd"]
    await gate.settle()
    assert len(gate.running) == 1
    calls[1].cancel()
    calls[2].cancel()
    await gate.finish_all()
    assert [texts(await calls[index]) for index in (0, 3)] == [["a"], ["d"]]
    assert all(calls[index].cancelled() for index in (1, 2))
    assert len(gate.queue) == 0
    assert gate.counts() == {"ok": 2, "cancelled": 2}


async def test_complaint_08_no_exception_ends_the_batcher(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the forming of a batch, the worker or the counting raises: who waits is answered, and the next too."""
    gate = Gate()
    with caplog.at_level(logging.ERROR, logger="glyphline"):
        with monkeypatch.context() as broken:
            broken.setattr(gate.queue, "take", lambda *_, **__: 1 / 0)
            (outcome,) = await gate.read("a")
            assert isinstance(outcome, Failed)
            assert isinstance(outcome.error, InternalError)
        call = gate.read("b")
        await gate.settle()
        gate.runs[-1].raise_error(ZeroDivisionError())
        (outcome,) = await call
        assert isinstance(outcome, Failed)
        call = gate.read("c", "d")
        await gate.settle()
        gate.runs[-1].ended.set_result(JobResult([reading("c")], 0.1))  # one too few
        first, second = await call
        assert isinstance(first, Finished)
        assert isinstance(second, Failed)
        with monkeypatch.context() as broken:
            broken.setattr(gate.metrics, "count_outcome", lambda *_: 1 / 0)
            call = gate.read("e", "f")
            await gate.finish_all()
            assert texts(await call) == ["e", "f"]
    assert {record.message for record in caplog.records} == {
        "no batch could be formed",
        "batch failed",
        "outcome not counted",
    }
    call = gate.read("g")
    await gate.finish_all()
    assert texts(await call) == ["g"]
    assert gate.idle == 1


async def test_complaint_10_the_expired_and_the_cancelled_never_reach_a_worker() -> None:
    gate = Gate()
    first = gate.read("first")
    await gate.settle()
    late = gate.read("late", deadline=1.0)
    gone = gate.read("gone")
    await gate.settle()
    gone.cancel()
    gate.now = 1.0
    await gate.finish_all()
    assert [run.names for run in gate.runs] == [["first"]]
    assert await late == [Expired()]
    assert texts(await first) == ["first"]
    assert gate.counts() == {"ok": 1, "cancelled": 1, "expired": 1}


@pytest.mark.parametrize("first", ["finish", "cancel"])
async def test_complaint_12_a_cancellation_that_races_with_the_answer_counts_once(first: str) -> None:
    gate = Gate()
    calls = [gate.read(name) for name in "abcd"]
    await gate.settle()
    steps: list[Callable[[], object]] = [gate.runs[0].finish, calls[0].cancel]
    for step in steps if first == "finish" else reversed(steps):
        step()
    await asyncio.gather(*calls, return_exceptions=True)
    await gate.settle()
    assert sum(gate.counts().values()) == 4
    assert [texts(await call) for call in calls[1:]] == [["b"], ["c"], ["d"]]


async def test_complaint_13_a_full_queue_refuses_at_once() -> None:
    gate = Gate(max_queue=2)
    held = gate.read("held")
    await gate.settle()
    waiting = gate.read("a", "b")
    await gate.settle()
    with pytest.raises(QueueFullError, match="at most 2"):
        await gate.read("c")
    await gate.finish_all()
    assert texts(await held) + texts(await waiting) == ["held", "a", "b"]


async def test_who_holds_the_queue_makes_room_for_others_and_both_are_counted() -> None:
    gate = Gate(max_queue=4)
    held = gate.read("held")
    await gate.settle()
    greedy = gate.read("a", "b", "c", "d", client="greedy")
    await gate.settle()
    modest = gate.read("e", client="modest")
    await gate.finish_all()
    assert texts(await held) + texts(await modest) == ["held", "e"]
    *read, pushed = await greedy
    assert texts(read) == ["a", "b", "c"]
    assert isinstance(pushed, Failed)
    assert isinstance(pushed.error, QueueFullError)
    assert gate.counts() == {"ok": 5, "rejected": 1}
    assert gate.rejected("queue_full") == 1


async def test_complaint_14_every_refusal_is_by_a_limit_and_is_counted() -> None:
    """However long batches take, only the caller's own deadline drops an image; the metrics tell."""
    gate = Gate(max_batch=1)
    calls = [gate.read(str(index)) for index in range(5)] + [gate.read("late", deadline=5000.0)]
    for _ in range(6):
        await gate.settle()
        gate.now += 3600.0
        for run in gate.running:
            run.finish()
    await gate.settle()
    assert [texts(await call) for call in calls[:5]] == [[str(index)] for index in range(5)]
    (outcome,) = await calls[5]
    assert isinstance(outcome, Finished | Expired)
    assert gate.rejected("deadline") == gate.counts().get("expired", 0)
    assert gate.rejected("queue_full") == 0


async def test_complaint_15_images_are_counted_and_large_calls_are_split() -> None:
    gate = Gate(workers=2, max_batch=4)
    call = gate.read(*map(str, range(50)))
    await gate.finish_all()
    assert texts(await call) == [str(index) for index in range(50)]
    assert max(len(run.names) for run in gate.runs) == 4
    assert sum(len(run.names) for run in gate.runs) == 50


async def test_one_call_of_many_images_does_not_make_another_client_wait_for_all_of_it() -> None:
    gate = Gate(max_batch=4)
    large = gate.read(*map(str, range(400)), client="large")
    await gate.settle()
    small = gate.read("small", client="small")
    await gate.settle()
    for _ in range(2):
        gate.running[0].finish()
        await gate.settle()
    assert texts(await small) == ["small"]
    assert not large.done()
    await gate.finish_all()
    assert len(texts(await large)) == 400


async def test_an_image_that_kills_workers_is_found_and_fails_alone(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate(workers=2, max_batch=8)
    calls = [gate.read(name) for name in ["a", "b", "fatal", "d", "e", "f", "g", "h"]]
    while not all(call.done() for call in calls):
        await gate.settle()
        for run in gate.running:
            if "fatal" in run.names:
                run.raise_error(WorkerLostError("it ended"))
            else:
                run.finish()
    for name, call in zip(["a", "b", "fatal", "d", "e", "f", "g", "h"], calls, strict=True):
        if name == "fatal":
            (outcome,) = await call
            assert isinstance(outcome, Failed)
            assert isinstance(outcome.error, FatalImageError)
        else:
            assert texts(await call) == [name]
    assert sum("fatal" in run.names for run in gate.runs) <= 4
    assert gate.counts() == {"ok": 7, "worker_lost": 1}
    lost = [record for record in caplog.records if record.message == "batch lost"]
    assert lost[-1].request_ids == ["fatal"]  # type: ignore[attr-defined]


async def test_the_last_worker_is_not_risked_while_another_is_on_its_way() -> None:
    gate = Gate(workers=2)
    suspect = gate.read("suspect")
    await gate.settle()
    gate.living = 1
    gate.runs[0].raise_error(WorkerLostError("it ended"))
    await gate.settle()
    other = gate.read("other")
    await gate.finish_all()
    assert texts(await other) == ["other"]
    assert not suspect.done()
    gate.living = 2
    gate.batcher.schedule()
    await gate.finish_all()
    assert texts(await suspect) == ["suspect"]


STEPS = st.one_of(
    st.tuples(st.just("read"), st.integers(1, 6), st.none() | st.floats(0.0, 3.0), st.sampled_from("xyz")),
    st.tuples(st.just("cancel"), st.integers(0, 30)),
    st.tuples(st.just("wait"), st.floats(0.0, 2.0)),
    st.tuples(st.sampled_from(["finish", "die", "raise"]), st.integers(0, 5)),
    st.tuples(st.just("turn")),
)


@given(steps=st.lists(STEPS, max_size=40), workers=st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_every_image_has_one_outcome_its_own_whatever_happens(steps: list[tuple[object, ...]], workers: int) -> None:
    """Calls come, are cancelled, expire; workers read, fail and die, in any order."""

    async def play() -> None:
        gate = Gate(workers, max_batch=3, max_queue=12)
        calls: list[tuple[list[str], asyncio.Task[list[Outcome[Done]]]]] = []
        for step in steps:
            match step:
                case "read", int(count), patience, str(client):
                    names = [f"{len(calls)}.{index}" for index in range(count)]
                    deadline = gate.now + patience if isinstance(patience, float) else None
                    calls.append((names, gate.read(*names, client=client, deadline=deadline)))
                case "cancel", int(index) if calls:
                    calls[index % len(calls)][1].cancel()
                case "wait", float(seconds):
                    gate.now += seconds
                case str(how), int(index) if gate.running:
                    run = gate.running[index % len(gate.running)]
                    errors = {"die": WorkerLostError("it ended"), "raise": ZeroDivisionError()}
                    run.finish() if how == "finish" else run.raise_error(errors[how])
                case _:
                    await gate.settle()
        await gate.finish_all()
        counted = refused = 0
        for names, call in calls:
            assert call.done()
            counted += len(names)
            if call.cancelled():
                continue
            if call.exception() is not None:
                assert isinstance(call.exception(), QueueFullError)
                refused += len(names)
                continue
            for name, outcome in zip(names, call.result(), strict=True):
                assert not isinstance(outcome, Withdrawn)
                if isinstance(outcome, Finished):
                    assert isinstance(outcome.value.result, Reading)
                    assert outcome.value.result.text == name
        assert len(gate.queue) == 0
        assert gate.idle == workers
        never_begun = sum(len(names) for names, call in calls if call.cancelled())
        assert counted - refused - never_begun <= sum(gate.counts().values()) <= counted - refused

    logging.disable(logging.CRITICAL)
    try:
        asyncio.run(play())
    finally:
        logging.disable(logging.NOTSET)
