"""Reads with all cores of this machine: worker processes, each with one recogniser of one thread."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from glyphline.models.session import available_threads
from glyphline.service.jobs.engines import worker
from glyphline.service.jobs.engines.engine import ReadChunk, in_flight
from glyphline.service.jobs.engines.worker import WorkerSettings
from glyphline.service.jobs.errors import JobError
from glyphline.service.jobs.items import Chunk
from glyphline.service.jobs.pictures import Picture
from glyphline.service.jobs.records import ModelIdentity
from glyphline.service.jobs.rows import Outcome, RowError

__all__ = ["LocalEngine", "usual_workers"]

_CHUNKS_PER_WORKER = 3  # one at work, one waiting, one finished and waiting for its turn in the output
_CRASHES_IN_A_ROW = 5
_WORKERS_PER_GPU = 4  # while one's batch is on the GPU, the others decode


def usual_workers(device: str) -> int:
    """Returns the number of processes that keep the machine busy: one a core, and a few where a GPU reads."""
    cores = available_threads()
    return min(cores, _WORKERS_PER_GPU) if device != "cpu" else cores


class LocalEngine:
    """Reads in worker processes. Needs neither a server nor grpc nor torch."""

    def __init__(self, settings: WorkerSettings, model: ModelIdentity, workers: int) -> None:
        """Starts nothing yet.

        Args:
            settings: What every worker does.
            model: The bundle that they read with.
            workers: Processes.
        """
        self.model = model
        self._settings = settings
        self._count = workers

    def __enter__(self) -> Self:
        """Returns the engine."""
        return self

    def read(self, chunks: Iterable[Chunk], *, in_order: bool) -> Generator[ReadChunk, None, None]:
        """Reads chunks; see `Engine`. A picture that crashes its worker becomes an error. Closing ends the workers.

        Raises:
            GlyphlineError: If no image can be read: the bundle or the options are at fault, or the workers keep dying.
        """
        with _Workers(self._settings, self._count) as workers:
            most = self._count * _CHUNKS_PER_WORKER
            yield from in_flight(chunks, most, workers.submit_chunk, workers.outcomes, in_order=in_order)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Does nothing: workers end with the reading."""


@dataclass(frozen=True, slots=True)
class _Task:
    pictures: tuple[Picture, ...]
    future: Future[list[Outcome]]
    executor: ProcessPoolExecutor


class _Workers:
    """A process pool that survives the death of a process: the image at fault is found and becomes an error."""

    def __init__(self, settings: WorkerSettings, count: int) -> None:
        self._settings = settings
        self._count = count
        self._crashes = 0
        self._executor = self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with suppress(RuntimeError) if kind is JobError else nullcontext():  # its thread may never have started
            self._executor.shutdown(wait=True, cancel_futures=True)

    def submit_chunk(self, chunk: Chunk) -> _Task:
        """Hands a chunk to the next free worker."""
        return self.submit(tuple(item.picture for item in chunk.items))

    def submit(self, pictures: tuple[Picture, ...]) -> _Task:
        """Hands pictures to the next free worker.

        Raises:
            JobError: If there is none and none can be started.
        """
        try:
            return self._submit(pictures)
        except BrokenProcessPool:
            self._replace(self._executor)
            return self._submit(pictures)

    def outcomes(self, task: _Task) -> list[Outcome]:
        """Waits for a task; after a crash its pictures are read again.

        First as before, since most have nothing to do with it and must read as in any other run, to the last digit;
        then one at a time, so that the one at fault is found.
        """
        outcomes = self._outcomes_unless_dead(task)
        if outcomes is None:
            outcomes = self._outcomes_unless_dead(self.submit(task.pictures))
        if outcomes is None:
            return [self._outcome_alone(picture) for picture in task.pictures]
        self._crashes = 0
        return outcomes

    def _outcomes_unless_dead(self, task: _Task) -> list[Outcome] | None:
        try:
            return task.future.result()
        except BrokenProcessPool:
            self._replace(task.executor)
            return None

    def _outcome_alone(self, picture: Picture) -> Outcome:
        task = self.submit((picture,))
        try:
            outcome = task.future.result()[0]
        except BrokenProcessPool as error:
            self._crashes += 1
            if self._crashes >= _CRASHES_IN_A_ROW:
                raise JobError(
                    f"{self._crashes} worker processes in a row died, the last with {picture.source};"
                    " is there enough memory?"
                ) from error
            self._replace(task.executor)
            return RowError("worker_crashed", "the worker process died while it read this image")
        self._crashes = 0
        return outcome

    def _start(self) -> ProcessPoolExecutor:
        # spawn: a fork would copy this process's threads' locks in whatever state they are.
        context = multiprocessing.get_context("spawn")
        with _failure_told():
            return ProcessPoolExecutor(self._count, context, initializer=worker.start, initargs=(self._settings,))

    def _submit(self, pictures: tuple[Picture, ...]) -> _Task:
        with _failure_told(), _interrupts_held():
            return _Task(pictures, self._executor.submit(worker.read_pictures, pictures), self._executor)

    def _replace(self, broken: ProcessPoolExecutor) -> None:
        if broken is self._executor:  # else an earlier task of the same crash has replaced it already
            broken.shutdown(wait=True, cancel_futures=True)
            self._executor = self._start()


@contextmanager
def _failure_told() -> Iterator[None]:
    """Says that processes could not be started, and ends what was started: the end of this process waits for it.

    Raises:
        JobError: If memory, processes or open files run out, or the new process is gone before it has its orders: then
            the pipe to it is broken.
    """
    before = multiprocessing.active_children()
    try:
        yield
    except BrokenProcessPool:
        raise
    except (OSError, RuntimeError) as error:  # RuntimeError: no thread can be started
        for child in multiprocessing.active_children():
            if child not in before:
                child.terminate()
        raise JobError(
            f"worker processes could not be started: {error}; are there enough memory, processes and open files?"
            " --workers 1 needs the least"
        ) from error


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Starts processes that do not see Ctrl-C, which reaches every process of a terminal: only the parent ends the job.

    The mask is inherited by what is started meanwhile; an interrupt that comes here is delivered on leaving.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
