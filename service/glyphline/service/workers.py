"""The worker processes as the front process sees them: started, fed, watched and replaced.

Each worker has one thread here that talks through its pipe, so that no pipe ever blocks the event loop. A worker that
gives no sign of life is killed: at work it says now and then that it lives, and without work it is asked.

Models are changed by changing workers. A model that is new is loaded by new processes, one after the other, and each
takes the place of an old one once it is ready: what is wrong with the model, be it a crash, harms nobody, and no call
waits while it loads. What is not used any more is dropped by the workers as they are.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import signal
from collections.abc import Callable, Coroutine
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

__all__ = ["BEATS", "Worker", "WorkerPool"]

Reply = TypeVar("Reply")

logger = logging.getLogger(__name__)

# `spawn`: a forked copy of a process that runs gRPC and threads hangs sooner or later.
_SPAWN = multiprocessing.get_context("spawn")
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 30.0
_EXIT_SECONDS = 5.0
_LAST_SECONDS = 1.0  # between the end of a worker's pipe and its own
BEATS = 4  # that a worker at work has for one to be heard in time


class Worker:
    """One worker process.

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
            self._process.join(_EXIT_SECONDS)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
            logger.debug("worker ended", extra={"worker": self.index, "exit_code": self._process.exitcode})
            self._process.close()
            self._process = None


class _Place:
    """A worker's place, which is filled again whenever its worker is lost.

    Attributes:
        member: The worker; it may be lost.
        lock: Held by whoever fills the place.
    """

    def __init__(self, member: Worker) -> None:
        self.member = member
        self.lock = asyncio.Lock()


class WorkerPool:
    """All workers of a server, each replaced when it dies.

    Args:
        count: How many.
        start_seconds: How long one may take to load.
        silence_seconds: How long one may give no sign of life.
        on_idle: Called when a worker becomes free.
        on_change: Called when the number of living workers changes, with that number.
        on_loss: Called when a worker has died.
    """

    def __init__(
        self,
        count: int,
        *,
        start_seconds: float,
        silence_seconds: float,
        on_idle: Callable[[], None],
        on_change: Callable[[int], None],
        on_loss: Callable[[], None],
    ) -> None:
        self._count = count
        self._start_seconds = start_seconds
        self._silence_seconds = silence_seconds
        self._on_idle = on_idle
        self._on_change = on_change
        self._on_loss = on_loss
        self._living: set[Worker] = set()
        self._idle: list[Worker] = []
        self._retired: set[Worker] = set()  # at work for the last time
        self._all: set[Worker] = set()
        self._places: list[_Place] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.providers: dict[ModelKey, str] = {}

    @property
    def size(self) -> int:
        """Workers when none is being replaced."""
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

    async def start(self, config: WorkerConfig) -> None:
        """Starts all workers and returns when all are ready. If it fails, it may be tried again.

        Args:
            config: What each holds.

        Raises:
            ModelRefusedError: If one cannot hold a model.
            StartError: If one cannot start.
        """
        self._config = config
        members = [self._make(index, config) for index in range(self._count)]
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
            self._places.append(_Place(member))
        for place in self._places:
            self._run(self._supervise(place))
        self._run(self._watch())

    async def load(self, config: WorkerConfig) -> None:
        """Replaces every worker, one after the other, by one that holds other models; the old ones finish their batch.

        Args:
            config: What each holds from now on, if all can.

        Raises:
            ModelRefusedError: If one cannot hold a model.
            StartError: If one cannot start. Those before it hold the new models already; what they are not to hold
                can be unloaded.
        """
        while stale := next((place for place in self._places if place.member.config is not config), None):
            async with stale.lock:
                if stale.member.config is not config:
                    await self._fill(stale, config)
        self._config = config

    async def unload(self, config: WorkerConfig, models: tuple[ModelKey, ...]) -> None:
        """Has every worker drop models that nobody reads with any more.

        Args:
            config: What each holds then.
            models: The models.
        """
        self._config = config
        holders = [member for member in self._living if not member.providers.keys().isdisjoint(models)]
        drops = [member.unload(models, self._start_seconds) for member in holders]
        for loss in await asyncio.gather(*drops, return_exceptions=True):
            if isinstance(loss, WorkerLostError):
                logger.error("worker lost over unloading", extra={"reason": str(loss)})
            elif isinstance(loss, BaseException):
                raise loss
        for key in models:
            self.providers.pop(key, None)

    def acquire(self) -> Worker | None:
        """Takes a free worker, or None if all are at work."""
        return self._idle.pop() if self._idle else None

    def release(self, member: object) -> None:
        """Gives a worker back."""
        assert isinstance(member, Worker)
        if member in self._retired:
            self._retired.discard(member)
            self._run(self._dispose(member))
        elif member in self._living and member.alive:
            self._idle.append(member)
            self._on_idle()

    async def stop(self) -> None:
        """Ends all workers. One at work may finish its batch first, if that takes no longer than a few seconds."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._places.clear()
        self._living.clear()
        self._idle.clear()
        self._retired.clear()
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

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _make(self, index: int, config: WorkerConfig) -> Worker:
        member = Worker(index, config, self._silence_seconds)
        self._all.add(member)
        return member

    async def _fill(self, place: _Place, config: WorkerConfig) -> None:
        """Starts a worker and gives it a place, once it is ready. Whoever had the place may finish its batch."""
        member = self._make(place.member.index, config)
        try:
            await member.start(self._start_seconds)
        except StartError:
            await self._dispose(member)
            raise
        old, place.member = place.member, member
        self._enter(member)
        if old in self._living:
            at_work = old not in self._idle
            self._leave(old)
            if at_work and old.alive:
                self._retired.add(old)
            else:
                await self._dispose(old)
        logger.info("worker replaced", extra={"worker": member.index, "pid": member.pid})

    async def _supervise(self, place: _Place) -> None:
        """Keeps a place filled: waits for its worker's end, and starts the next."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            member, lived_from = place.member, asyncio.get_running_loop().time()
            await member.ended()
            if place.member is not member:
                continue  # replaced on purpose
            self._leave(member)
            logger.error(
                "worker lost", extra={"worker": member.index, "pid": member.pid, "exit_code": member.exit_code}
            )
            self._on_loss()
            await self._dispose(member)
            if asyncio.get_running_loop().time() - lived_from > _LONGEST_PAUSE_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            while place.member is member:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                async with place.lock:
                    if place.member is member:
                        try:
                            await self._fill(place, self._config)
                        except StartError as error:
                            logger.error("worker cannot start", extra={"worker": member.index, "reason": str(error)})

    async def _watch(self) -> None:
        """Asks the workers that have nothing to do whether they live, again and again."""
        while True:
            await asyncio.sleep(self._silence_seconds / 2)
            for member in self._idle:
                self._run(self._ping(member))
            self._on_idle()  # what waits beside a free worker must not wait for ever, whatever went wrong

    async def _ping(self, member: Worker) -> None:
        try:
            await member.ping()
        except WorkerLostError as error:
            if member in self._living:
                logger.error("worker hangs", extra={"worker": member.index, "pid": member.pid, "reason": str(error)})

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


def _spell_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # one of those without a name
        return str(number)


def _hear(reply: asyncio.Future[Any]) -> None:
    """Takes note of an error that nobody waits for."""
    if not reply.cancelled():
        reply.exception()
