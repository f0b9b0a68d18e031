"""The load of a soak and the faults within it, at random moments."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeAlias, cast

import grpc
import numpy as np
from server import Server
from soak_faults import Certificate, Repository
from soak_tally import Tally

from glyphline.recognition.v1 import recognition_pb2 as messages
from glyphline.recognition.v1 import recognition_pb2_grpc as services

Metadata: TypeAlias = tuple[tuple[str, str], ...]
Stub: TypeAlias = "services.RecognitionServiceAsyncStub"

DEADLINE_SECONDS = 60.0
BAD_FILE = b"\x89PNG\r\n\x1a\n and then nothing that a picture could be made of"
# What a server without workers and one with a full queue say; a client comes back, as Glyphline's own do.
_PASSING = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}
_PASSING_NUMBERS = {code.value[0]: code.name for code in _PASSING}
_PAUSE_SECONDS = 0.25
_STREAM_IMAGES = 3
_SILENCE_SECONDS = 60.0  # three times as long as the server lets a connection say nothing
_ROLL_SECONDS = 30.0
_WORKERS_SECONDS = 60.0  # twice the longest pause before a worker is replaced


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of what.

    Attributes:
        seconds: Length of the run.
        rate: Plain images a second.
        cancels: Calls that are cancelled.
        bad: Files that are no images.
        slow: Streams that send and read at leisure.
        silent: Connections that say nothing.
        bursts: Times that more is asked at once than the queue holds.
        burst_calls: Calls of a burst.
        kills: Workers killed.
        reloads: Changes of the models.
        rolls: Changes of the certificate.
        workers: Worker processes that there are before and must be there after.
    """

    seconds: float
    rate: float
    cancels: int
    bad: int
    slow: int
    silent: int
    bursts: int
    burst_calls: int
    kills: int
    reloads: int
    rolls: int
    workers: int


class Attack:
    """One run of load and faults against a server.

    Args:
        server: The server.
        repository: Its models, where they change.
        certificate: Its certificate, where it changes.
        tokens: Of two callers: the usual one, and the one of the bursts.
        contents: Encoded images.
        expected: The text of each.
        seed: Makes the same arrivals and moments again.
    """

    def __init__(
        self,
        server: Server,
        repository: Repository,
        certificate: Certificate,
        tokens: tuple[str, str],
        contents: list[bytes],
        expected: list[str],
        seed: int,
    ) -> None:
        self.tally = Tally()
        self._server = server
        self._repository = repository
        self._certificate = certificate
        self._usual, self._greedy = ((("authorization", f"Bearer {token}"),) for token in tokens)
        self._images = [messages.Image(content=content) for content in contents]
        self._expected = expected
        self._random = np.random.default_rng(seed)

    async def run(self, plan: Plan) -> Tally:
        """Attacks, and waits for the end of every call."""
        async with self._connect() as stub:
            seconds = plan.seconds
            begun = time.perf_counter()
            moments: list[tuple[float, Callable[[], Awaitable[None]]]] = []
            kinds: list[tuple[int, Callable[[], Awaitable[None]]]] = [
                (round(plan.rate * seconds), lambda: self._plain(stub)),
                (plan.cancels, lambda: self._cancelled(stub)),
                (plan.bad, lambda: self._bad(stub)),
                (plan.slow, lambda: self._slow(stub)),
                (plan.silent, self._silent),
                (plan.bursts, lambda: self._burst(stub, plan.burst_calls)),
            ]
            for count, what in kinds:
                moments += [(when, what) for when in self._random.uniform(0, seconds, count).tolist()]
            # Faults of the server come while there is still time to see what they do.
            moments += [(when, self._kill) for when in self._random.uniform(0, seconds * 0.9, plan.kills).tolist()]
            moments += [(when, self._reload) for when in _evenly(plan.reloads, seconds * 0.9)]
            moments += [(when, self._roll) for when in _evenly(plan.rolls, seconds * 0.9)]
            moments += [(float(when), lambda: self._sample(plan.workers)) for when in np.arange(0.0, seconds, 1.0)]
            async with asyncio.TaskGroup() as group:
                for when, what in sorted(moments, key=lambda moment: moment[0]):
                    await asyncio.sleep(max(0.0, begun + when - time.perf_counter()))
                    group.create_task(_started(what))
            await self._plain(stub)  # it still reads
            await self._count_workers(plan.workers)
        return self.tally

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Stub]:
        """Makes a connection of its own."""
        credentials = grpc.ssl_channel_credentials(self._certificate.authority.read_bytes())
        options = [("grpc.use_local_subchannel_pool", 1)]  # else channels share connections
        async with grpc.aio.secure_channel(self._server.target, credentials, options) as channel:
            await channel.channel_ready()
            yield cast("services.RecognitionServiceAsyncStub", services.RecognitionServiceStub(channel))

    async def _ask(
        self, stub: Stub, image: messages.Image, who: Metadata, *, again: bool = True
    ) -> messages.RecognizeResponse:
        """Has one image read, and tries again what passes, as Glyphline's clients do."""
        last = time.perf_counter() + DEADLINE_SECONDS
        request = messages.RecognizeRequest(image=image)
        while True:
            try:
                return await stub.Recognize(request, timeout=last - time.perf_counter(), metadata=who)
            except grpc.aio.AioRpcError as error:
                if not again or error.code() not in _PASSING or time.perf_counter() + 1 > last:
                    raise
                self.tally.again[error.code().name] += 1
            await asyncio.sleep(_PAUSE_SECONDS * float(self._random.uniform(0.5, 1.5)))

    def _pick(self) -> int:
        return int(self._random.integers(len(self._images)))

    def _end(self, kind: str, end: str) -> None:
        self.tally.ends[f"{kind} {end}"] += 1

    def _compare(self, response: messages.RecognizeResponse, number: int) -> None:
        self.tally.different += response.alternatives[0].text != self._expected[number]

    async def _plain(self, stub: Stub) -> None:
        number = self._pick()
        self.tally.sent["plain"] += 1
        began = time.perf_counter()
        try:
            response = await self._ask(stub, self._images[number], self._usual)
        except grpc.aio.AioRpcError as error:
            self._end("plain", error.code().name)
            return
        self.tally.latencies.append(time.perf_counter() - began)
        self._end("plain", "OK")
        self._compare(response, number)

    async def _cancelled(self, stub: Stub) -> None:
        number = self._pick()
        self.tally.sent["cancelled"] += 1
        call = asyncio.create_task(self._ask(stub, self._images[number], self._usual))
        asyncio.get_running_loop().call_later(float(self._random.exponential(0.01)), call.cancel)
        try:
            response = await call
        except grpc.aio.AioRpcError as error:
            self._end("cancelled", error.code().name)
        except asyncio.CancelledError:
            self._end("cancelled", "CANCELLED")
        else:
            self._end("cancelled", "OK")
            self._compare(response, number)

    async def _bad(self, stub: Stub) -> None:
        self.tally.sent["bad"] += 1
        try:
            await self._ask(stub, messages.Image(content=BAD_FILE), self._usual)
        except grpc.aio.AioRpcError as error:
            self._end("bad", error.code().name)
        else:
            self._end("bad", "OK")

    async def _burst(self, stub: Stub, calls: int) -> None:
        """Asks for more than the queue holds, which must be refused at once and cost no other caller anything."""
        self.tally.done["burst"] += 1
        await asyncio.gather(*(self._burst_call(stub) for _ in range(calls)))

    async def _burst_call(self, stub: Stub) -> None:
        number = self._pick()
        self.tally.sent["burst"] += 1
        try:
            response = await self._ask(stub, self._images[number], self._greedy, again=False)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE:  # it came while no worker was ready
                self.tally.again["UNAVAILABLE"] += 1
                self._end("burst", grpc.StatusCode.RESOURCE_EXHAUSTED.name)
            else:
                self._end("burst", error.code().name)
        else:
            self._end("burst", "OK")
            self._compare(response, number)

    async def _slow(self, stub: Stub) -> None:
        """Sends the images of a stream and takes their answers at leisure."""
        self.tally.sent["slow"] += 1
        numbers = [self._pick() for _ in range(_STREAM_IMAGES)]
        pauses = self._random.exponential(0.5, 2 * _STREAM_IMAGES).tolist()

        async def requests() -> AsyncIterator[messages.StreamingRecognizeRequest]:
            yield messages.StreamingRecognizeRequest(config=messages.RecognitionConfig())
            for place, number in enumerate(numbers):
                await asyncio.sleep(pauses[place])
                item = messages.BatchItem(id=str(place), image=self._images[number])
                yield messages.StreamingRecognizeRequest(item=item)

        answered: set[str] = set()
        call = stub.StreamingRecognize(requests(), timeout=DEADLINE_SECONDS, metadata=self._usual)
        try:
            async for answer in call:
                result = answer.result
                number = numbers[int(result.id)]
                if result.id in answered:
                    self.tally.faults.append("one image of a stream had two results")
                answered.add(result.id)
                if result.HasField("response"):
                    self._compare(result.response, number)
                elif result.error.code in _PASSING_NUMBERS:
                    self.tally.again[f"{_PASSING_NUMBERS[result.error.code]} in a stream"] += 1
                    self._compare(await self._ask(stub, self._images[number], self._usual), number)
                else:
                    self.tally.faults.append(f"an image of a stream failed: {result.error.message}")
                await asyncio.sleep(pauses[_STREAM_IMAGES + len(answered) - 1])
        except grpc.aio.AioRpcError as error:
            self._end("slow", error.code().name)
        else:
            self._end("slow", "OK" if len(answered) == _STREAM_IMAGES else "INCOMPLETE")

    async def _silent(self) -> None:
        """Opens a connection and says nothing, not even what TLS begins with: the server must close it."""
        self.tally.sent["silent"] += 1
        host, _, port = self._server.target.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            with suppress(ConnectionError):
                await asyncio.wait_for(reader.read(), _SILENCE_SECONDS)
            self._end("silent", "CLOSED")
        except TimeoutError:
            self._end("silent", "LEFT OPEN")
        finally:
            writer.close()

    async def _kill(self) -> None:
        workers = self._server.worker_pids()
        if workers:
            victim = workers[int(self._random.integers(len(workers)))]
            os.kill(victim, signal.SIGKILL)
            self.tally.done["worker killed"] += 1

    async def _reload(self) -> None:
        self.tally.done[await asyncio.to_thread(self._repository.change)] += 1
        self._server.process.send_signal(signal.SIGHUP)

    async def _roll(self) -> None:
        """Renews the certificate: new connections must soon be shown it, and be served as those that stand."""
        wanted = await asyncio.to_thread(self._certificate.renew)
        last = time.perf_counter() + _ROLL_SECONDS
        while await asyncio.to_thread(self._certificate.shown, self._server.target) != wanted:
            if time.perf_counter() > last:
                self.tally.faults.append(f"a renewed certificate was not shown within {_ROLL_SECONDS:g} s")
                return
            await asyncio.sleep(_PAUSE_SECONDS)
        self.tally.done["certificate renewed"] += 1
        async with self._connect() as stub:
            await self._plain(stub)

    async def _sample(self, workers: int) -> None:
        self.tally.resident.append(await asyncio.to_thread(self._server.resident_bytes))
        settled = await asyncio.to_thread(self._server.settled_bytes, workers)
        self.tally.memory.append((time.perf_counter(), settled))

    async def _count_workers(self, wanted: int) -> None:
        """Waits until all workers are there again and none besides, as one that nobody ended would be."""
        last = time.perf_counter() + _WORKERS_SECONDS
        while (there := len(await asyncio.to_thread(self._server.worker_pids))) != wanted:
            if time.perf_counter() > last:
                self.tally.faults.append(f"there are {there} workers in the end, not {wanted}")
                return
            await asyncio.sleep(_PAUSE_SECONDS)


async def _started(what: Callable[[], Awaitable[None]]) -> None:
    await what()


def _evenly(count: int, seconds: float) -> list[float]:
    """Returns moments far enough apart that what each does can be seen to end."""
    return [seconds * (index + 0.5) / count for index in range(count)]
