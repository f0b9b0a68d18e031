"""The walk of an image through the server: admitted, read, compared with the truth if that is known, remembered."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from glyphline.models.decoding.readings import Reading
from glyphline.models.error_rate import EditCounts, edit_counts
from glyphline.models.errors import GlyphlineError, ImageError
from glyphline.service.admission import Admission, ReadRequest
from glyphline.service.batcher import Batcher, Done, Item
from glyphline.service.catalogue import ServedModel
from glyphline.service.entries import Expired, Failed, Finished, Outcome, Withdrawn
from glyphline.service.errors import DeadlineError, FatalImageError, InternalError, QueueFullError
from glyphline.service.in_progress import InProgress
from glyphline.service.metrics import Metrics
from glyphline.service.references import RecentReadings, RememberedReading
from glyphline.service.spans import record_image

__all__ = ["Answer", "Pipeline"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A reading with all that is told about it.

    Attributes:
        request_id: Name of the request.
        reading: What the image says.
        model: What read it.
        evaluation: The comparison with the true text, if that was given.
        done: How it was served.
    """

    request_id: str
    reading: Reading
    model: ServedModel
    evaluation: EditCounts | None
    done: Done


class Pipeline:
    """Reads images for the calls of all services.

    Args:
        admission: The door.
        batcher: The way to the workers.
        readings: The recent readings.
        metrics: What is counted.
    """

    def __init__(self, admission: Admission, batcher: Batcher, readings: RecentReadings, metrics: Metrics) -> None:
        self.admission = admission
        self.in_progress = InProgress()
        self._batcher = batcher
        self._readings = readings
        self._metrics = metrics

    async def read(self, request: ReadRequest | GlyphlineError, client: str, deadline: float | None) -> Answer:
        """Reads one image, like `read_all`.

        Raises:
            GlyphlineError: If it cannot be read.
        """
        (answer,) = await self.read_all([request], client, deadline)
        if isinstance(answer, GlyphlineError):
            raise answer
        return answer

    async def read_all(
        self, requests: Sequence[ReadRequest | GlyphlineError], client: str, deadline: float | None
    ) -> list[Answer | GlyphlineError]:
        """Reads several images.

        Args:
            requests: What is asked, or why it cannot be.
            client: Who asks: an opaque name.
            deadline: Moment of the loop's clock; None for none.

        Returns:
            One answer or error per request, in order.

        Raises:
            NotReadyError: If there is nobody to read.
            QueueFullError: If the images do not fit in the queue; then none is read.
        """
        with self.in_progress.working():
            return await self._read_all(requests, client, deadline)

    async def _read_all(
        self, requests: Sequence[ReadRequest | GlyphlineError], client: str, deadline: float | None
    ) -> list[Answer | GlyphlineError]:
        self.admission.check_ready()
        admitted = [await self._admit(request, client, deadline) for request in requests]
        items = [item for item in admitted if isinstance(item, Item)]
        try:
            outcomes = iter(await self._batcher.read(items))
        except QueueFullError as error:
            for item in items:
                self._metrics.count_refusal(error, item.model, item.decoder)
            raise
        return [self._conclude(item, next(outcomes)) if isinstance(item, Item) else item for item in admitted]

    def submit_reference(self, request_id: str, reference: str) -> tuple[RememberedReading, EditCounts]:
        """Compares an earlier reading with its true text, and counts that if it is news.

        Raises:
            RequestNotFoundError: If the reading is not remembered.
            ReferenceConflictError: If it has been given another text.
        """
        reading, news = self._readings.submit(request_id, reference)
        counts = edit_counts(reference, reading.text)
        if news:
            self._metrics.count_evaluation(reading.model, counts)
        return reading, counts

    async def _admit(
        self, request: ReadRequest | GlyphlineError, client: str, deadline: float | None
    ) -> Item | GlyphlineError:
        if isinstance(request, GlyphlineError):
            self._metrics.count_refusal(request)
            return request
        try:
            return await self.admission.admit(request, client, deadline)
        except GlyphlineError as error:
            return error

    def _conclude(self, item: Item, outcome: Outcome[Done]) -> Answer | GlyphlineError:
        match outcome:
            case Finished(done):
                record_image(item, done)
                if isinstance(done.result, Reading):
                    return self._answer(item, done, done.result)
                if isinstance(done.result, ImageError):
                    return done.result
                logger.error("image failed", extra={"request_id": item.request_id, "exception": done.result.traceback})
                return InternalError("the image failed")
            case Failed(FatalImageError() | QueueFullError() as error):
                return error
            case Failed():
                return InternalError("the batch failed")
            case Expired() | Withdrawn():
                return DeadlineError("the deadline left no time to read the image")

    def _answer(self, item: Item, done: Done, reading: Reading) -> Answer:
        evaluation = None
        if item.reference is not None:
            evaluation = edit_counts(item.reference, reading.text)
            self._metrics.count_evaluation(item.model, evaluation)
        self._readings.remember(item.request_id, RememberedReading(reading.text, item.model, item.reference))
        return Answer(item.request_id, reading, item.model, evaluation, done)
