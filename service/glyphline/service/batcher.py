"""Dynamic batching: feeds free workers from the queue, and gives every image its own outcome.

It is work-conserving. A free worker starts at once on whatever waits, so a lone request is never delayed; while all
workers are busy what arrives coalesces into the next batches. There is no timer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.decoding.readings import Reading
from glyphline.models.errors import ImageError
from glyphline.service.batching import BatchQueue, Entry, Outcome, Ticket
from glyphline.service.catalogue import ServedModel
from glyphline.service.errors import InternalError, WorkerLostError
from glyphline.service.messages import Fault, Job, ModelKey
from glyphline.service.metrics import Metrics
from glyphline.service.workers import Worker, WorkerPool

__all__ = ["Batcher", "Done", "Item"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """An image that was admitted.

    Attributes:
        request_id: Its name.
        content: The image file.
        model: What reads it.
        options: How.
        decoder: `greedy` or `beam`, whichever the options come to.
        width: Its width in the model's form, padded to the bucket; of a long line, of all its windows together.
        pixels: Pixels of the image file.
        priority: The higher goes first.
        deadline: Moment of the loop's clock; None for none.
        reference: The true text, if known.
    """

    request_id: str
    content: bytes
    model: ServedModel
    options: DecodingOptions
    decoder: str
    width: int
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
    """

    result: Reading | ImageError | Fault
    queue_seconds: float
    inference_seconds: float
    batch_size: int
    provider: str


class Batcher:
    """Between the calls, which wait for their images, and the workers, which read them.

    Args:
        queue: What waits.
        metrics: What is counted.
        batch_seconds: How long a worker may take over a batch.
        clock: The queue's clock.
    """

    def __init__(
        self, queue: BatchQueue[Item, Done], metrics: Metrics, *, batch_seconds: float, clock: Callable[[], float]
    ) -> None:
        self._queue = queue
        self._metrics = metrics
        self._batch_seconds = batch_seconds
        self._clock = clock
        self._pool: WorkerPool | None = None
        self._scheduled = False
        self._running: set[asyncio.Task[None]] = set()
        metrics.watch_queue(lambda: len(queue))

    def attach(self, pool: WorkerPool) -> None:
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
            self._metrics.count_outcome(item, outcome)

        return Entry(
            item=item,
            key=(item.model.name, item.model.version, item.options),
            width=item.width,
            pixels=item.pixels,
            size=len(item.content),
            priority=item.priority,
            deadline=item.deadline,
            settle=settle,
        )

    def _feed(self) -> None:
        self._scheduled = False
        assert self._pool is not None
        while self._pool.idle and (batch := self._queue.take(self._pool.idle)):
            worker = self._pool.acquire()
            assert worker is not None
            task = asyncio.create_task(self._run(worker, batch))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _run(self, worker: Worker, batch: list[Ticket[Item, Done]]) -> None:
        """Has one worker read one batch, and settles every image of it whatever happens."""
        assert self._pool is not None
        started = self._clock()
        items = [ticket.entry.item for ticket in batch]
        model: ModelKey = (items[0].model.name, items[0].model.version)
        waits = [started - ticket.submitted_at for ticket in batch]
        self._metrics.observe_waits(waits)
        error: Exception = InternalError("the batch was given up")
        try:
            job = Job(model, items[0].options, [item.content for item in items])
            result = await worker.run(job, self._batch_seconds)
            self._queue.observe_run(batch[0].entry.key, self._clock() - started)
            self._metrics.observe_batch(result)
            for ticket, wait, outcome in zip(batch, waits, result.outcomes, strict=True):
                done = Done(outcome, wait, result.seconds, len(batch), worker.providers[model])
                self._queue.finish(ticket, done)
        except WorkerLostError as lost:
            error = lost
            requests = [item.request_id for item in items]
            logger.error("batch lost", extra={"worker": worker.index, "reason": str(lost), "request_ids": requests})
        except Exception:
            requests = [item.request_id for item in items]
            logger.exception("batch failed", extra={"worker": worker.index, "request_ids": requests})
            error = InternalError("the batch failed")
        finally:
            for ticket in batch:
                self._queue.fail(ticket, error)  # those that are settled stay as they are
            self._pool.release(worker)
