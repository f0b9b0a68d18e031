"""One worker process as the front process holds it: started, asked, and killed if it gives no sign of life.

What runs inside the process is `worker`; that there are several, and that each is replaced, is the affair of
`worker_pool`. Each handle has one thread that talks through the process's pipe, so that no pipe ever blocks the event
loop. A worker at work says now and then that it lives, and without work it is asked.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

from glyphline.service import worker
from glyphline.service.errors import DeviceRefusedError, ModelRefusedError, StartError, WorkerLostError
from glyphline.service.messages import (
    Beat,
    Job,
    JobResult,
    ModelKey,
    Ping,
    Pong,
    Ready,
    Refused,
    Unload,
    WorkerConfig,
)
from glyphline.service.output import follow_output

__all__ = ["BEATS", "EXIT_SECONDS", "WorkerHandle"]

Reply = TypeVar("Reply")

logger = logging.getLogger(__name__)

# `spawn`: a forked copy of a process that runs gRPC and threads hangs sooner or later.
_SPAWN = multiprocessing.get_context("spawn")
_LAST_SECONDS = 1.0  # between the end of a worker's pipe and its own
BEATS = 4  # that a worker at work has for one to be heard in time
EXIT_SECONDS = 5.0  # that a worker has to end by itself


class WorkerHandle:
    """One worker process, as the front process holds it.

    Args:
        index: Its number, for names and log lines.
        config: What it holds.
        silence_seconds: How long it may give no sign of life.
    """

    def __init__(self, index: int, config: WorkerConfig, silence_seconds: float) -> None:
        self.index = index
        self.config = config
        self.providers: dict[ModelKey, str] = {}
        self._silence_seconds = silence_seconds
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
            DeviceRefusedError: If its device is not there.
            ModelRefusedError: If it refuses a model.
            StartError: If it refuses, dies, or takes longer.
        """
        try:
            answer = await self._call(self._launch, seconds)
        except WorkerLostError as error:
            raise StartError(f"worker {self.index} was lost while it loaded its models: {error}") from error
        if isinstance(answer, Refused):
            if answer.lacks_device:
                raise DeviceRefusedError(answer.message)
            raise (
                StartError(answer.message)
                if answer.folder is None
                else ModelRefusedError(answer.folder, answer.message)
            )
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
        return await self._ask(job, JobResult, seconds)

    async def ping(self) -> None:
        """Asks the worker whether it lives.

        Raises:
            WorkerLostError: If it does not; it is killed.
        """
        await self._ask(Ping(), Pong, 2 * self._silence_seconds)

    async def unload(self, models: tuple[ModelKey, ...], seconds: float) -> None:
        """Has the worker drop models, once it has read what it was given before.

        Args:
            models: The models.
            seconds: How long it may take.

        Raises:
            WorkerLostError: If the worker dies, or is killed.
        """
        self.providers = (await self._ask(Unload(models), Ready, seconds)).providers

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
        self._ended.set()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._dispose)
        self._thread.shutdown(wait=False)

    async def _ask(self, question: Job | Ping | Unload, kind: type[Reply], seconds: float) -> Reply:
        """Sends a message and returns the answer; a worker that gives none is as good as dead."""
        try:
            return await self._call(partial(self._exchange, question, kind), seconds)
        except WorkerLostError:
            self.kill()
            self._ended.set()  # before the event loop hears of the process's end, so that nobody is given this worker
            raise

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
            reply.add_done_callback(_hear)
            await asyncio.wait({reply})
            raise WorkerLostError(f"it gave no answer within {seconds:g} s")
        return reply.result()

    def _launch(self) -> Ready | Refused:
        """Starts the process and receives its first word. Runs in the worker's thread."""
        here, there = _SPAWN.Pipe()
        heard, output = _SPAWN.Pipe(duplex=False)
        self._connection = here
        process = _SPAWN.Process(
            target=worker.main,
            args=(there, self.config, output, self.index),
            name=f"glyphline-worker-{self.index}",
            daemon=True,
        )
        follow_output(heard, self.index)
        try:
            process.start()
        finally:
            for end in (there, output):
                end.close()  # the process has its own copies; ours would hide its end
        self._process = process
        if self._killed:
            process.kill()
        answer = self._receive()
        if not isinstance(answer, (Ready, Refused)):
            raise TypeError(f"a worker began with {type(answer).__name__}")
        return answer

    def _exchange(self, question: Job | Ping | Unload, kind: type[Reply]) -> Reply:
        """Sends a message and receives its answer, with whatever signs of life come first. Runs in the thread."""
        assert self._connection is not None
        try:
            self._connection.send(question)
            while self._connection.poll(self._silence_seconds):
                answer = self._receive()
                if isinstance(answer, kind):
                    return answer
                if not isinstance(answer, Beat):
                    raise TypeError(f"a worker answered with {type(answer).__name__}")
        except OSError as error:
            raise WorkerLostError("it had ended before it was asked") from error
        raise WorkerLostError(f"it gave no sign of life for {self._silence_seconds:g} s")

    def _receive(self) -> object:
        assert self._connection is not None
        try:
            return self._connection.recv()
        except (EOFError, OSError) as error:
            raise WorkerLostError(f"it ended{self._spell_end()}") from error

    def _spell_end(self) -> str:
        """Tells how the process ended, which it may be about to; nothing if that cannot be told."""
        assert self._process is not None
        self._process.join(_LAST_SECONDS)
        code = self._process.exitcode
        if code is None:
            return ""
        return f" with exit code {code}" if code >= 0 else f" by signal {_spell_signal(-code)}"

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
            self._process.join(EXIT_SECONDS)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
            logger.debug("worker ended", extra={"worker": self.index, "exit_code": self._process.exitcode})
            self._process.close()
            self._process = None


def _spell_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # one of those without a name
        return str(number)


def _hear(reply: asyncio.Future[Any]) -> None:
    """Takes note of an error that nobody waits for."""
    if not reply.cancelled():
        reply.exception()
