"""The worker processes as the front process sees them: started, fed, watched and replaced.

Each worker has one thread here that talks through its pipe, so that no pipe ever blocks the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

from glyphline.service import worker
from glyphline.service.errors import StartError, WorkerLostError
from glyphline.service.messages import Job, JobResult, ModelKey, Ready, Refused, WorkerConfig

__all__ = ["Worker", "WorkerPool"]

Reply = TypeVar("Reply")

logger = logging.getLogger(__name__)

# `spawn`: a forked copy of a process that runs gRPC and threads hangs sooner or later.
_SPAWN = multiprocessing.get_context("spawn")
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 30.0
_EXIT_SECONDS = 5.0


class Worker:
    """One worker process.

    Args:
        index: Its number, for names and log lines.
        config: What it holds.
    """

    def __init__(self, index: int, config: WorkerConfig) -> None:
        self.index = index
        self.providers: dict[ModelKey, str] = {}
        self._config = config
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"glyphline-worker-{index}")
        self._ended = asyncio.Event()
        self._watched: int | None = None
        self._killed = False

    @property
    def pid(self) -> int | None:
        """The process id, once started."""
        return None if self._process is None else self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How the process ended: a negative number is the signal that did it."""
        return None if self._process is None else self._process.exitcode

    async def start(self, seconds: float) -> None:
        """Starts the process and waits until it is ready.

        Args:
            seconds: How long it may take.

        Raises:
            StartError: If it refuses, dies, or takes longer.
        """
        try:
            answer = await self._call(self._launch, seconds)
        except WorkerLostError as error:
            raise StartError(f"worker {self.index} was lost while it loaded its models: {error}") from error
        if isinstance(answer, Refused):
            raise StartError(answer.message)
        self.providers = answer.providers
        assert self._process is not None
        self._watched = self._process.sentinel
        asyncio.get_running_loop().add_reader(self._watched, self._on_exit)

    async def run(self, job: Job, seconds: float) -> JobResult:
        """Has the worker read a batch.

        Args:
            job: The batch.
            seconds: How long it may take; after that the worker is killed.

        Raises:
            WorkerLostError: If the worker dies over it, or is killed.
        """
        try:
            return await self._call(partial(self._exchange, job), seconds)
        except WorkerLostError:
            self._ended.set()  # before the event loop hears of the process's end, so that nobody is given this worker
            raise

    @property
    def alive(self) -> bool:
        """Whether the process can be given work."""
        return not self._ended.is_set()

    async def ended(self) -> None:
        """Waits until the process has ended."""
        await self._ended.wait()

    def kill(self) -> None:
        """Ends the process at once, or as soon as it has begun."""
        self._killed = True
        if self._process is not None:
            self._process.kill()

    async def close(self) -> None:
        """Lets the process end, or ends it if it does not, and frees what belonged to it."""
        self._unwatch()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._dispose)
        self._thread.shutdown(wait=False)

    async def _call(self, function: Callable[[], Reply], seconds: float) -> Reply:
        """Runs a function that waits for the process in its thread; kills the process if that takes too long."""
        reply = asyncio.get_running_loop().run_in_executor(self._thread, function)
        try:
            done, _ = await asyncio.wait({reply}, timeout=seconds)
        except asyncio.CancelledError:
            self.kill()
            reply.add_done_callback(_hear)
            raise
        if not done:
            self.kill()  # the pipe breaks, which ends the wait in the thread
            await asyncio.wait({reply})
            reply.exception()
            raise WorkerLostError(f"it gave no answer within {seconds:g} s")
        return reply.result()

    def _launch(self) -> Ready | Refused:
        """Starts the process and receives its first word. Runs in the worker's thread."""
        here, there = _SPAWN.Pipe()
        self._connection = here
        process = _SPAWN.Process(
            target=worker.main, args=(there, self._config), name=f"glyphline-worker-{self.index}", daemon=True
        )
        process.start()
        there.close()  # the process has its own copy; ours would hide its end
        self._process = process
        if self._killed:
            process.kill()
        answer = self._receive()
        if not isinstance(answer, (Ready, Refused)):
            raise TypeError(f"a worker began with {type(answer).__name__}")
        return answer

    def _exchange(self, job: Job) -> JobResult:
        """Sends a batch and receives its result. Runs in the worker's thread."""
        assert self._connection is not None
        try:
            self._connection.send(job)
        except OSError as error:
            raise WorkerLostError("it had ended before it got the batch") from error
        result = self._receive()
        if not isinstance(result, JobResult):
            raise TypeError(f"a worker answered with {type(result).__name__}")
        return result

    def _receive(self) -> object:
        assert self._connection is not None
        try:
            return self._connection.recv()
        except (EOFError, OSError) as error:
            raise WorkerLostError("it ended") from error

    def _on_exit(self) -> None:
        self._unwatch()
        self._ended.set()

    def _unwatch(self) -> None:
        if self._watched is not None:
            asyncio.get_running_loop().remove_reader(self._watched)
            self._watched = None

    def _dispose(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.join(_EXIT_SECONDS)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
            logger.debug("worker ended", extra={"worker": self.index, "exit_code": self._process.exitcode})
            self._process.close()
            self._process = None


class WorkerPool:
    """All workers of a server, each replaced when it dies.

    Args:
        count: How many.
        config: What each holds.
        start_seconds: How long one may take to load.
        on_idle: Called when a worker becomes free.
        on_change: Called when the number of living workers changes, with that number.
        on_loss: Called when a worker has died.
    """

    def __init__(
        self,
        count: int,
        config: WorkerConfig,
        *,
        start_seconds: float,
        on_idle: Callable[[], None],
        on_change: Callable[[int], None],
        on_loss: Callable[[], None],
    ) -> None:
        self._count = count
        self._config = config
        self._start_seconds = start_seconds
        self._on_idle = on_idle
        self._on_change = on_change
        self._on_loss = on_loss
        self._living: set[Worker] = set()
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._supervisors: list[asyncio.Task[None]] = []
        self.providers: dict[ModelKey, str] = {}

    @property
    def size(self) -> int:
        """How many workers there are when none is being replaced."""
        return self._count

    @property
    def living(self) -> int:
        """Workers that are ready or at work."""
        return len(self._living)

    @property
    def idle(self) -> int:
        """Workers that are ready and have nothing to do."""
        return len(self._idle)

    @property
    def pids(self) -> list[int]:
        """Process ids of the living workers."""
        return [member.pid for member in self._living if member.pid is not None]

    async def start(self) -> None:
        """Starts all workers and returns when all are ready.

        Raises:
            StartError: If one cannot start.
        """
        members = [self._make(index) for index in range(self._count)]
        starts = [asyncio.create_task(member.start(self._start_seconds)) for member in members]
        try:
            await asyncio.gather(*starts)
        except BaseException:
            for start in starts:
                start.cancel()
            await asyncio.gather(*starts, return_exceptions=True)
            await self.stop()
            raise
        for member in members:
            self._enter(member)
            self._supervisors.append(asyncio.create_task(self._supervise(member)))

    def acquire(self) -> Worker | None:
        """Takes a free worker, or None if all are at work."""
        return self._idle.pop() if self._idle else None

    def release(self, member: Worker) -> None:
        """Gives a worker back."""
        if member in self._living and member.alive:
            self._idle.append(member)
            self._on_idle()

    async def stop(self) -> None:
        """Ends all workers. One at work may finish its batch first, if that takes no longer than a few seconds."""
        for supervisor in self._supervisors:
            supervisor.cancel()
        await asyncio.gather(*self._supervisors, return_exceptions=True)
        self._supervisors = []
        self._living.clear()
        self._idle.clear()
        closing = [asyncio.create_task(member.close()) for member in self._all]
        if closing:
            _, late = await asyncio.wait(closing, timeout=_EXIT_SECONDS)
            if late:
                self.kill()
            await asyncio.gather(*closing)
        self._all.clear()

    def kill(self) -> None:
        """Ends all workers at once."""
        for member in self._all:
            member.kill()

    def _make(self, index: int) -> Worker:
        member = Worker(index, self._config)
        self._all.add(member)
        return member

    async def _supervise(self, member: Worker) -> None:
        """Keeps one place filled: waits for its worker's end, and starts the next."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            lived_from = asyncio.get_running_loop().time()
            await member.ended()
            self._leave(member)
            logger.error(
                "worker lost", extra={"worker": member.index, "pid": member.pid, "exit_code": member.exit_code}
            )
            self._on_loss()
            await self._dispose(member)
            if asyncio.get_running_loop().time() - lived_from > _LONGEST_PAUSE_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            while True:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                member = self._make(member.index)
                try:
                    await member.start(self._start_seconds)
                except StartError as error:
                    logger.error("worker cannot start", extra={"worker": member.index, "reason": str(error)})
                    await self._dispose(member)
                    continue
                logger.info("worker replaced", extra={"worker": member.index, "pid": member.pid})
                self._enter(member)
                break

    def _enter(self, member: Worker) -> None:
        self.providers.update(member.providers)
        self._living.add(member)
        self._idle.append(member)
        self._on_change(self.living)
        self._on_idle()

    def _leave(self, member: Worker) -> None:
        self._living.discard(member)
        if member in self._idle:
            self._idle.remove(member)
        self._on_change(self.living)

    async def _dispose(self, member: Worker) -> None:
        await member.close()
        self._all.discard(member)


def _hear(reply: asyncio.Future[Any]) -> None:
    """Takes note of an error that nobody waits for."""
    if not reply.cancelled():
        reply.exception()
