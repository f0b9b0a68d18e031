"""Has one or several running servers read. Whatever one refuses for now is asked again, of the next."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import grpc

from glyphline.models.decoding import DecodingOptions
from glyphline.models.image import GreyImage, ImageLimits
from glyphline.service.client import Client, RecognitionError
from glyphline.service.client.images import encode_image
from glyphline.service.client.results import Outcome as ServerOutcome
from glyphline.service.jobs.engines.engine import ReadChunk, in_flight
from glyphline.service.jobs.errors import JobError
from glyphline.service.jobs.items import Chunk
from glyphline.service.jobs.pictures import Content, Picture, fetch
from glyphline.service.jobs.records import ModelIdentity
from glyphline.service.jobs.rows import Outcome, RowError

__all__ = ["PICTURE_ERRORS", "ServerEngine", "ServerPlan", "picture_error"]

# The server's names for what is wrong with a picture, and those that reading here gives.
PICTURE_ERRORS = {
    "IMAGE_EMPTY": "empty_image",
    "IMAGE_FATAL": "worker_crashed",
    "IMAGE_INVALID": "image",
    "IMAGE_TOO_LARGE": "image_too_large",
    "IMAGE_TOO_WIDE": "image_too_wide",
    "IMAGE_UNDECODABLE": "undecodable_image",
    "MESSAGE_TOO_LARGE": "image_too_large",
}
_PASSING = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED)
_CALLS = 4  # at a time, of each server
_PAUSE = 0.5
_MESSAGE_BYTES = 32 * 2**20  # of pictures that are held for one call


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """What the servers are asked.

    Attributes:
        model: Name of the model.
        version: Its version. All rows of a job are read by one.
        options: How to decode.
        limits: Larger files are not sent.
        batch_size: Most images of a call.
        patience: Seconds without any answer after which the servers count as gone.
        calls: Calls at a time, of each server.
    """

    model: str
    version: int
    options: DecodingOptions
    limits: ImageLimits
    batch_size: int = 32
    patience: float = 60.0
    calls: int = _CALLS


def picture_error(error: RecognitionError) -> RowError | None:
    """Returns what an error says of its picture; None where it is not the picture's fault."""
    code = PICTURE_ERRORS.get(error.reason)
    if code is None and error.code is grpc.StatusCode.INTERNAL:
        code = "internal_error"
    return None if code is None else RowError(code, error.message)


class ServerEngine:
    """Reads by asking servers, with low priority: whoever waits for one picture goes first."""

    def __init__(self, clients: Sequence[Client], plan: ServerPlan, model: ModelIdentity) -> None:
        """Takes connected clients; whoever made them closes them.

        Args:
            clients: One for each server.
            plan: What they are asked.
            model: What reads.
        """
        self.model = model
        self._clients = list(clients)
        self._plan = plan
        self._threads = ThreadPoolExecutor(len(clients) * plan.calls, thread_name_prefix="glyphline-job")
        self._stopped = threading.Event()
        self._heard = time.monotonic()

    def __enter__(self) -> Self:
        """Begins to count the time without an answer."""
        self._heard = time.monotonic()
        return self

    def read(self, chunks: Iterable[Chunk], *, in_order: bool) -> Generator[ReadChunk, None, None]:
        """Reads chunks; see `Engine`.

        Raises:
            RecognitionError: If a server refuses what is asked for good, or none has answered while the patience lasts.
        """
        most = 2 * len(self._clients) * self._plan.calls
        yield from in_flight(chunks, most, self._submit, lambda task: task.future.result(), in_order=in_order)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Lets calls in progress end, and begins no others."""
        self._stopped.set()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _submit(self, chunk: Chunk) -> _Task:
        return _Task(self._threads.submit(self._read_chunk, chunk))

    def _read_chunk(self, chunk: Chunk) -> list[Outcome]:
        outcomes: list[Outcome] = []
        batch: list[Content] = []
        held = 0
        for item in chunk.items:
            content = _content(item.picture, self._plan.limits)
            batch.append(content)
            held += len(content) if isinstance(content, bytes) else 0
            if len(batch) == self._plan.batch_size or held >= _MESSAGE_BYTES:
                outcomes += self._read_batch(chunk.number, batch)
                batch, held = [], 0
        return outcomes + self._read_batch(chunk.number, batch)

    def _read_batch(self, turn: int, contents: Sequence[Content]) -> list[Outcome]:
        """Asks one server after the other until every picture has its reading or its error."""
        outcomes: dict[int, Outcome] = {
            index: content for index, content in enumerate(contents) if isinstance(content, RowError)
        }
        while open_ones := [index for index in range(len(contents)) if index not in outcomes]:
            if self._stopped.is_set():
                raise JobError("the job has been stopped")
            images = [content for index in open_ones if isinstance(content := contents[index], bytes)]
            answers = self._clients[turn % len(self._clients)].recognize_many(
                images,
                model=self._plan.model,
                version=self._plan.version,
                options=self._plan.options,
                priority="low",
                batch_size=self._plan.batch_size,
                parallel=1,
            )
            turn += 1
            self._sort(dict(zip(open_ones, answers, strict=True)), outcomes)
        return [outcomes[index] for index in range(len(contents))]

    def _sort(self, answers: dict[int, ServerOutcome], outcomes: dict[int, Outcome]) -> None:
        """Takes what is settled; what may succeed later stays open, after a pause."""
        passing: RecognitionError | None = None
        for index, answer in answers.items():
            if not isinstance(answer, RecognitionError):
                outcomes[index] = answer.reading
                self._heard = time.monotonic()
            elif (error := picture_error(answer)) is not None:
                outcomes[index] = error
                self._heard = time.monotonic()
            elif answer.retryable or answer.code in _PASSING:
                passing = answer
            else:
                raise answer
        if passing is None:
            return
        if time.monotonic() - self._heard > self._plan.patience:
            raise passing
        self._stopped.wait(max(_PAUSE, passing.retry_after or 0.0))


@dataclass(frozen=True, slots=True)
class _Task:
    future: Future[list[Outcome]]


def _content(picture: Picture, limits: ImageLimits) -> Content:
    """Fetches a picture as the bytes of a file, which is what can be sent."""
    content = fetch(picture, limits)
    return encode_image(content.pixels) if isinstance(content, GreyImage) else content
