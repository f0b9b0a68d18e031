"""Reads any number of images with all cores: worker processes, results in the order of the input, flat memory."""

from __future__ import annotations

import itertools
import multiprocessing
import signal
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Self

from glyphline.models.errors import GlyphlineError
from glyphline.models.session import available_threads
from glyphline.service.jobs import worker
from glyphline.service.jobs.references import reference_key
from glyphline.service.jobs.rows import Outcome, Row, RowError
from glyphline.service.jobs.worker import WorkerSettings

_CHUNK_IMAGES = 64  # enough for the recogniser to group widths, few enough for a lively progress bar
_CHUNKS_PER_WORKER = 3  # one at work, one waiting, one finished and waiting for its turn in the output
_CRASHES_IN_A_ROW = 5


class JobError(GlyphlineError):
    """The workers cannot work."""


@dataclass(frozen=True, slots=True)
class Job:
    """How to read the images.

    Attributes:
        settings: What every worker does.
        model: Name of the bundle, for the rows.
        version: Version of the bundle, for the rows.
        workers: Processes; each holds one recogniser with one thread.
        references: True texts by `reference_key`.
    """

    settings: WorkerSettings
    model: str
    version: int
    workers: int = field(default_factory=available_threads)
    references: Mapping[str, str] = field(default_factory=dict)


def transcribe(sources: Iterable[str], job: Job) -> Generator[Row, None, None]:
    """Reads images and yields a row for each, in order, as soon as it and all before it are done.

    `sources` is consumed only a few chunks ahead of the rows, so neither its length nor a slow reader costs memory.
    An image that cannot be read becomes a row with an error, also one that crashes its worker. Closing the generator
    ends the workers.

    Raises:
        GlyphlineError: If no image can be read: the bundle or the options are at fault, or the workers keep dying.
    """
    with _Workers(job.settings, job.workers) as workers:
        waiting: deque[_Task] = deque()
        chunks = _chunks(sources, _CHUNK_IMAGES)
        for chunk in chunks:
            waiting.append(workers.submit(chunk))
            if len(waiting) >= job.workers * _CHUNKS_PER_WORKER:
                yield from _rows(waiting.popleft(), workers, job)
        while waiting:
            yield from _rows(waiting.popleft(), workers, job)


@dataclass(frozen=True, slots=True)
class _Task:
    sources: tuple[str, ...]
    outcomes: Future[list[Outcome]]
    executor: ProcessPoolExecutor


def _rows(task: _Task, workers: _Workers, job: Job) -> Iterator[Row]:
    for source, outcome in zip(task.sources, workers.outcomes(task), strict=True):
        reference = job.references.get(reference_key(source)) if job.references else None
        yield Row(source, outcome, job.model, job.version, reference)


def _chunks(sources: Iterable[str], size: int) -> Iterator[tuple[str, ...]]:
    remaining = iter(sources)
    while chunk := tuple(itertools.islice(remaining, size)):
        yield chunk


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

    def submit(self, sources: tuple[str, ...]) -> _Task:
        """Hands images to the next free worker.

        Raises:
            JobError: If there is none and none can be started.
        """
        try:
            return self._submit(sources)
        except BrokenProcessPool:
            self._replace(self._executor)
            return self._submit(sources)

    def outcomes(self, task: _Task) -> list[Outcome]:
        """Waits for a task, in order; after a crash its images are read again, one at a time."""
        try:
            outcomes = task.outcomes.result()
        except BrokenProcessPool:
            self._replace(task.executor)
            return [self._outcome_alone(source) for source in task.sources]
        self._crashes = 0
        return outcomes

    def _outcome_alone(self, source: str) -> Outcome:
        task = self.submit((source,))
        try:
            outcome = task.outcomes.result()[0]
        except BrokenProcessPool as error:
            self._crashes += 1
            if self._crashes >= _CRASHES_IN_A_ROW:
                raise JobError(
                    f"{self._crashes} worker processes in a row died, the last with {source}; is there enough memory?"
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

    def _submit(self, sources: tuple[str, ...]) -> _Task:
        with _failure_told(), _interrupts_held():
            return _Task(sources, self._executor.submit(worker.read_files, sources), self._executor)

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
