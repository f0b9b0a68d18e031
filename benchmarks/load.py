"""The load that `serve.py` puts on a server: grpc.aio clients in a process of their own.

Closed loop: a number of callers, each sending its next call when its last one is answered. Open loop: calls arrive as a
Poisson process whatever the server does, and an answer's time counts from when its call was due, so that a server that
falls behind cannot hide it by slowing its callers.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import grpc
import numpy as np

from glyphline.recognition.v1 import recognition_pb2 as messages
from glyphline.recognition.v1 import recognition_pb2_grpc as services

# A call that takes this long has failed: no benchmark waits for ever.
DEADLINE_SECONDS = 60.0
_CODES = {code.value[0]: code.name for code in grpc.StatusCode}


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked for.

    Attributes:
        target: Address of the server, `host:port`.
        contents: Encoded images.
        expected: Text that the recogniser reads in each, in this process's own run of it.
        config: Serialised `RecognitionConfig`.
        images_per_call: Images of a call: of one by `Recognize`, of several by `BatchRecognize`.
        deadline: Seconds that a call may take.
    """

    target: str
    contents: Sequence[bytes]
    expected: Sequence[str]
    config: bytes
    images_per_call: int = 1
    deadline: float = DEADLINE_SECONDS


@dataclass(slots=True)
class Outcome:
    """What came back in one window.

    Attributes:
        seconds: Length of the window, until the last answer.
        latencies: Seconds of each answered image, which are those of its call.
        errors: Number of failed calls, or images of a call, by status code.
        different: Answers whose text is not the expected one.
        cpu_seconds: CPU time of the client's process.
    """

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    different: int = 0
    cpu_seconds: float = 0.0


class Caller:
    """Sends images of a task over one channel and notes how each call went."""

    def __init__(self, task: Task, channel: grpc.aio.Channel) -> None:
        """Prepares the requests of `task`, so that the window holds no work but calling."""
        config = messages.RecognitionConfig.FromString(task.config)
        # The generated class serves both kinds of channel; only its type stub tells them apart.
        self._stub = cast("services.RecognitionServiceAsyncStub", services.RecognitionServiceStub(channel))
        images = [messages.Image(content=content) for content in task.contents]
        self._requests = [messages.RecognizeRequest(image=image, config=config) for image in images]
        self._batches = []
        if task.images_per_call > 1:
            runs = [
                [(first + more) % len(images) for more in range(task.images_per_call)] for first in range(len(images))
            ]
            self._batches = [
                messages.BatchRecognizeRequest(
                    items=[messages.BatchItem(image=images[at]) for at in run], config=config
                )
                for run in runs
            ]
        self._expected = task.expected
        self._deadline = task.deadline
        self.outcome = Outcome()

    async def call(self, number: int, due: float) -> None:
        """Has image `number` (counted round and round) read, with those after it; its time counts from `due`."""
        index = number % len(self._requests)
        try:
            if self._batches:
                await self._call_for_several(index, due)
            else:
                response = await self._stub.Recognize(self._requests[index], timeout=self._deadline)
                self._note(index, response, due)
        except grpc.aio.AioRpcError as error:
            self.outcome.errors[error.code().name] += 1

    async def _call_for_several(self, index: int, due: float) -> None:
        answer = await self._stub.BatchRecognize(self._batches[index], timeout=self._deadline)
        for place, result in enumerate(answer.results, start=index):
            if result.HasField("error"):
                self.outcome.errors[_CODES[result.error.code]] += 1
            else:
                self._note(place % len(self._requests), result.response, due)

    def _note(self, index: int, response: messages.RecognizeResponse, due: float) -> None:
        self.outcome.latencies.append(time.perf_counter() - due)
        if response.alternatives[0].text != self._expected[index]:
            self.outcome.different += 1


async def _closed(task: Task, concurrency: int, seconds: float) -> Outcome:
    async with grpc.aio.insecure_channel(task.target) as channel:
        await channel.channel_ready()
        caller = Caller(task, channel)
        begun = time.perf_counter()
        # Callers start at different images, spread over all widths.
        starts = np.linspace(0, len(task.contents), concurrency, endpoint=False).astype(int)

        async def keep_calling(number: int) -> None:
            while (now := time.perf_counter()) - begun < seconds:
                await caller.call(number, now)
                number += task.images_per_call

        await asyncio.gather(*(keep_calling(int(start)) for start in starts))
        caller.outcome.seconds = time.perf_counter() - begun
        return caller.outcome


async def _open(task: Task, rate: float, seconds: float, seed: int) -> Outcome:
    random = np.random.default_rng(seed)
    gaps = random.exponential(task.images_per_call / rate, size=max(1, round(rate * seconds / task.images_per_call)))
    numbers = random.permutation(len(gaps))
    async with grpc.aio.insecure_channel(task.target) as channel:
        await channel.channel_ready()
        caller = Caller(task, channel)
        begun = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number, due in zip(numbers, begun + np.cumsum(gaps), strict=True):
                await asyncio.sleep(max(0.0, float(due) - time.perf_counter()))
                group.create_task(caller.call(int(number), float(due)))
        caller.outcome.seconds = time.perf_counter() - begun
        return caller.outcome


def closed_loop(task: Task, concurrency: int, seconds: float) -> Outcome:
    """Keeps `concurrency` callers busy for `seconds`."""
    cpu = time.process_time()
    outcome = asyncio.run(_closed(task, concurrency, seconds))
    outcome.cpu_seconds = time.process_time() - cpu
    return outcome


def open_loop(task: Task, rate: float, seconds: float, seed: int) -> Outcome:
    """Sends `rate` images a second on average for `seconds`, at random moments."""
    cpu = time.process_time()
    outcome = asyncio.run(_open(task, rate, seconds, seed))
    outcome.cpu_seconds = time.process_time() - cpu
    return outcome
