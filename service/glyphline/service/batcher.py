"""Dynamic batching: feeds free workers from the queue, and gives every image its own outcome.

It is work-conserving. A free worker starts at once on whatever waits, so a lone request is never delayed; while all
workers are busy what arrives coalesces into the next batches. No timer holds a batch back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.decoding.readings import Reading
from glyphline.models.errors import ImageError
from glyphline.service.batching import SUSPECT_PATIENCE_SECONDS, BatchQueue, Ticket
from glyphline.service.catalogue import ServedModel
from glyphline.service.entries import Entry, Outcome
from glyphline.service.errors import FatalImageError, InternalError, WorkerLostError
from glyphline.service.messages import Fault, Job, JobResult, ModelKey
from glyphline.service.metrics import Metrics

__all__ = ["Batcher", "Done", "Item", "Reader", "Readers"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """An image that was admitted.

    Attributes:
        request_id: Its name.
        client: Who sent it: an opaque name. Clients take turns.
        content: The image file.
        model: What reads it.
        options: How.
        decoder: `greedy` or `beam`, whichever the options come to.
        width: Its width in the model's form, padded to the bucket; of a long line, of all its windows together.
        work: What reading it costs, as columns that cost as much with the greedy search.
        pixels: Pixels of the image file.
        priority: The higher goes first.
        deadline: Moment of the loop's clock; None for none.
        reference: The true text, if known.
    """

    request_id: str
    client: str
    content: bytes
    model: ServedModel
    options: DecodingOptions
    decoder: str
    width: int
    work: int
    pixels: int
    priority: int
    deadline: float | None
    reference: str | None


@dataclass(frozen=True, slots=True)
class Done:
    """What a worker made of an image.

    Attributes:
        result: The reading, or what was wrong with the image, or that Glyphline failed.
        queue_seconds: Time that it waited.
        inference_seconds: Time that its batch took.
        batch_size: Images of that batch.
        provider: What ran the network.
        stages: Time that its batch spent in each stage.
    """

    result: Reading | ImageError | Fault
    queue_seconds: float
    inference_seconds: float
    batch_size: int
    provider: str
    stages: Mapping[str, float] = field(default_factory=dict)


class Reader(Protocol):
    """A worker, as the batcher needs it."""

    @property
    def index(self) -> int:
        """Its number, for log lines."""

    @property
    def providers(self) -> Mapping[ModelKey, str]:
        """What runs each model."""

    async def run(self, job: Job, seconds: float) -> JobResult:
        """Reads a batch.

        Raises:
            WorkerLostError: If the worker dies over it.
        """


class Readers(Protocol):
    """All workers, as the batcher needs them."""

    @property
    def size(self) -> int:
        """How many there are when none is being replaced."""

    @property
    def living(self) -> int:
        """How many are ready or at work."""

    @property
    def idle(self) -> int:
        """How many are ready and have nothing to do."""

    def acquire(self) -> Reader | None:
        """Takes one that is idle, if there is one."""

    def release(self, member: Reader) -> None:
        """Gives one back."""


class Batcher:
    """Between the calls, which wait for their images, and the workers, which read them.

    Args:
        queue: What waits.
        metrics: What is counted.
        batch_seconds: How long a worker may take over a batch.
        clock: The queue's clock.
        on_batch: Told of every batch that was read: the model, how long each image had waited, what became of it.
    """

    def __init__(
        self,
        queue: BatchQueue[Item, Done],
        metrics: Metrics,
        *,
        batch_seconds: float,
        clock: Callable[[], float],
        on_batch: Callable[[ModelKey, Sequence[float], JobResult], None] | None = None,
    ) -> None:
        self._queue = queue
        self._metrics = metrics
        self._batch_seconds = batch_seconds
        self._clock = clock
        self._on_batch = on_batch
        self._pool: Readers | None = None
        self._scheduled = False
        self._running: set[asyncio.Task[None]] = set()
        metrics.watch_queue(lambda: len(queue), queue.max_items)

    def attach(self, pool: Readers) -> None:
        """Tells the workers to feed."""
        self._pool = pool

    async def read(self, items: Sequence[Item]) -> list[Outcome[Done]]:
        """Has images read and waits for all of them. If the caller is cancelled, so are they.

        Raises:
            QueueFullError: If not all of them fit in the queue; then none is taken.
        """
        loop = asyncio.get_running_loop()
        waits: list[asyncio.Future[Outcome[Done]]] = [loop.create_future() for _ in items]
        tickets = self._queue.submit([self._entry(item, wait) for item, wait in zip(items, waits, strict=True)])
        self.schedule()
        try:
            return [await wait for wait in waits]
        finally:
            for ticket in tickets:
                self._queue.withdraw(ticket)

    def schedule(self) -> None:
        """Feeds the workers once this turn of the loop is over, so that what arrives together goes together."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._feed)

    def _entry(self, item: Item, wait: asyncio.Future[Outcome[Done]]) -> Entry[Item, Done]:
        def settle(outcome: Outcome[Done]) -> None:
            if not wait.done():
                wait.set_result(outcome)
            try:
                self._metrics.count_outcome(item, outcome)
            except Exception:  # the fault of one item must not reach those that are settled after it
                logger.exception("outcome not counted", extra={"request_id": item.request_id})

        return Entry(
            item=item,
            key=(item.model.name, item.model.version, item.options),
            client=item.client,
            width=item.width,
            work=item.work,
            pixels=item.pixels,
            size=len(item.content),
            priority=item.priority,
            deadline=item.deadline,
            settle=settle,
        )

    def _feed(self) -> None:
        self._scheduled = False
        try:
            self._start_batches()
        except Exception:
            logger.exception("no batch could be formed")
            self._queue.fail_waiting(InternalError("no batch could be formed"))

    def _start_batches(self) -> None:
        assert self._pool is not None
        while idle := self._pool.idle:
            spare = self._pool.living > 1 or self._pool.size == 1
            batch = self._queue.take(idle, spare=spare)
            if not batch:
                break
            worker = self._pool.acquire()
            assert worker is not None
            task = asyncio.create_task(self._run(worker, batch))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _run(self, worker: Reader, batch: list[Ticket[Item, Done]]) -> None:
        """Has one worker read one batch, and settles every image of it whatever happens."""
        assert self._pool is not None
        started = self._clock()
        items = [ticket.entry.item for ticket in batch]
        where = {"worker": worker.index, "request_ids": [item.request_id for item in items]}
        error: Exception = InternalError("the batch was given up")
        try:
            model: ModelKey = (items[0].model.name, items[0].model.version)
            waits = [started - ticket.submitted_at for ticket in batch]
            self._metrics.observe_waits(waits)
            job = Job(model, items[0].options, [item.content for item in items])
            result = await worker.run(job, self._batch_seconds)
            self._queue.observe_run(batch, self._clock() - started)
            self._metrics.observe_batch(result)
            if self._on_batch is not None:
                self._on_batch(model, waits, result)
            for ticket, wait, outcome in zip(batch, waits, result.outcomes, strict=True):
                done = Done(outcome, wait, result.seconds, len(batch), worker.providers[model], result.stages)
                self._queue.finish(ticket, done)
        except WorkerLostError as lost:
            logger.error("batch lost", extra={"reason": str(lost)} | where)
            self._queue.lose(batch, FatalImageError("workers die over this image"))
            self.schedule()
            asyncio.get_running_loop().call_later(SUSPECT_PATIENCE_SECONDS, self.schedule)
        except Exception:
            logger.exception("batch failed", extra=where)
            error = InternalError("the batch failed")
        finally:
            for ticket in batch:
                self._queue.fail(ticket, error)  # those that are settled, or wait again, stay as they are
            self._pool.release(worker)
