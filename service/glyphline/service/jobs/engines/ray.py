"""Has a Ray cluster read: actors, each with one recogniser of one thread, on whatever nodes Ray puts them.

Ray finds places for the workers, carries model and pictures' places to them and readings back, and tells when one is
gone. What is here is who reads which chunk: a free worker takes the next, and a chunk whose worker has died goes to
another. The driver keeps the journal, as with every engine.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import socket
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from glyphline.models.bundle import load_bundle
from glyphline.models.errors import DeviceError, GlyphlineError
from glyphline.service.jobs.engines.engine import ReadChunk, in_flight
from glyphline.service.jobs.engines.ray_worker import Reader, Shipment
from glyphline.service.jobs.engines.worker import WorkerSettings
from glyphline.service.jobs.errors import ClusterError, InputError, JobError
from glyphline.service.jobs.items import Chunk
from glyphline.service.jobs.pictures import Picture
from glyphline.service.jobs.records import ModelIdentity
from glyphline.service.jobs.rows import Outcome, RowError
from glyphline.service.jobs.storage import is_uri

try:
    import ray
    from ray.exceptions import RayActorError, RayError, RayTaskError
except ImportError as error:
    raise InputError("--engine ray needs Ray: pip install 'glyphline[ray]'") from error

__all__ = ["RayEngine", "connected", "usual_readers"]

_CHUNKS_PER_WORKER = 3  # one at work, two finished and waiting for their turn in the output
_TRIES = 2  # of a chunk, before its pictures are read one at a time to find that which kills; and of each of these
_DEATHS_IN_A_ROW = 5
_MISSED = frozenset({"file_not_found", "permission_denied"})
_AT_HAND = "auto"  # Ray's name for the cluster that this machine belongs to
_CONNECT_SECONDS = 10.0
_TELL_SECONDS = 30.0
_log = logging.getLogger(__name__)


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Connects this process to a cluster, and leaves it as it was.

    Args:
        address: `HOST:PORT` of the head, or `ray://HOST:PORT` from outside; None for what `RAY_ADDRESS` says, or else
            for the cluster that this machine belongs to.

    Raises:
        ClusterError: If there is none, or it has another version of Ray or Python.
    """
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS") or _AT_HAND
    stopping = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        _check_reachable(address)
        # log_to_driver: what workers print would be mixed into rows on the standard output.
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # ConnectionError, RuntimeError, TimeoutError, ValueError, and of gRPC
        raise ClusterError(
            f"no Ray cluster at {'hand' if address == _AT_HAND else address}: {_gist(error)}; --ray-address names"
            " one, and `ray start --head` starts one on this machine"
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in stopping.items():  # Ray has taken SIGTERM for itself
                signal.signal(number, handler)
    try:
        yield
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Makes sure that something listens there: Ray ends the process where nothing does.

    Raises:
        OSError: If nothing does.
        ValueError: If it is no address: of some other words Ray makes a cluster of its own.
    """
    if address == _AT_HAND:
        return
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not (host and port.isdigit()):
        raise ValueError("give HOST:PORT or ray://HOST:PORT")
    socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()


def usual_readers(device: str) -> int:
    """Returns the number of workers that keep the cluster busy as it is now: one a core, or one a GPU.

    Raises:
        DeviceError: If it has no GPU and one is wanted.
    """
    resources = ray.cluster_resources()
    cores = int(resources.get("CPU", 0))
    if device == "cpu":
        return max(1, cores)
    if not (gpus := int(resources.get("GPU", 0))):
        raise DeviceError("the cluster has no GPU; if it adds nodes as they are needed, give --workers")
    return max(1, min(gpus, cores))


class RayEngine:
    """Reads with the workers of a cluster that this process is connected to."""

    def __init__(self, settings: WorkerSettings, model: ModelIdentity, workers: int) -> None:
        """Starts nothing yet.

        Args:
            settings: What every worker does; the bundle lies on this machine.
            model: The bundle that they read with.
            workers: Actors. Those for which there is no room wait for it, and the others read meanwhile.
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
            GlyphlineError: If no image can be read, the workers keep dying, or a node does not see the pictures.
        """
        with _Readers(self._settings, self._count) as readers:
            most = self._count * _CHUNKS_PER_WORKER
            yield from in_flight(chunks, most, readers.submit, lambda task: task.future.result(), in_order=in_order)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Does nothing: workers end with the reading."""


@dataclass(frozen=True, slots=True)
class _Task:
    future: Future[list[Outcome]]


class _Readers:
    """The actors. A thread for each waits for its answer; one that dies is replaced wherever there is room."""

    def __init__(self, settings: WorkerSettings, count: int) -> None:
        self._count = count
        gpus = 0 if settings.device == "cpu" else 1
        self._actor = ray.remote(Reader).options(num_cpus=1, num_gpus=gpus, max_restarts=0, max_task_retries=0)
        self._shipment = ray.put(Shipment.of(settings, load_bundle(settings.bundle)))
        self._free: queue.SimpleQueue[Any] = queue.SimpleQueue()  # actors, what kept one from starting, None at the end
        self._lock = threading.Lock()
        self._alive: set[Any] = set()
        self._ready = 0
        self._told = time.monotonic()
        self._stopped = False
        self._deaths = 0  # of pictures in a row
        self._failures = 0  # starts in a row
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="glyphline-ray")

    def __enter__(self) -> Self:
        for _ in range(self._count):
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._stopped = True
            alive, self._alive = self._alive, set()
        for reader in alive:
            ray.kill(reader)
        for _each in range(self._count):
            self._free.put(None)
        self._threads.shutdown(wait=True, cancel_futures=True)

    def submit(self, chunk: Chunk) -> _Task:
        """Has the next free worker read a chunk."""
        return _Task(self._threads.submit(self._read, tuple(item.picture for item in chunk.items)))

    def _read(self, pictures: tuple[Picture, ...]) -> list[Outcome]:
        try:
            outcomes = self._try(pictures)
            if outcomes is None:
                outcomes = [self._read_alone(picture) for picture in pictures]
        except RayTaskError:
            raise
        except RayError as error:
            raise ClusterError(f"the Ray cluster is gone: {_gist(error)}") from error
        for picture, outcome in zip(pictures, outcomes, strict=True):
            _check_seen(picture, outcome)
        return outcomes

    def _read_alone(self, picture: Picture) -> Outcome:
        outcomes = self._try((picture,))
        if outcomes is not None:
            return outcomes[0]
        with self._lock:
            self._deaths += 1
            deaths = self._deaths
        if deaths >= _DEATHS_IN_A_ROW:
            raise JobError(
                f"the workers of {deaths} pictures in a row died, the last with {picture.source};"
                " is there enough memory on the nodes?"
            )
        return RowError("worker_crashed", "the worker process died while it read this image")

    def _try(self, pictures: tuple[Picture, ...]) -> list[Outcome] | None:
        """Reads pictures as a whole; None if every worker that tried has died."""
        for _ in range(_TRIES):
            reader = self._take()
            try:
                outcomes: list[Outcome] = ray.get(reader.read.remote(pictures))
            except RayTaskError as error:
                raise _told(error) from error
            except RayError as error:  # the actor, its node, or what it answered is gone
                self._replace(reader, error)
                continue
            with self._lock:
                self._deaths = 0
            self._free.put(reader)
            return outcomes
        return None

    def _take(self) -> Any:  # noqa: ANN401  (Ray's handles have no type of their own)
        """Waits for a free worker."""
        while not self._stopped:
            try:
                found = self._free.get(timeout=_TELL_SECONDS)
            except queue.Empty:
                self._tell_if_none()
                continue
            if isinstance(found, BaseException):
                self._start_another(found)
            elif found is not None:
                return found
        raise JobError("the job has been stopped")

    def _start(self) -> None:
        with self._lock:
            if self._stopped:
                return
            reader = self._actor.remote(self._shipment)
            self._alive.add(reader)
        reader.prepare.remote().future().add_done_callback(lambda future: self._started(reader, future))

    def _started(self, reader: Any, future: Future[None]) -> None:  # noqa: ANN401
        error = future.exception()
        with self._lock:
            if error is None:
                self._failures = 0
                self._ready += 1
            else:
                self._failures += 1
                self._alive.discard(reader)
        self._free.put(reader if error is None else error)

    def _start_another(self, error: BaseException) -> None:
        """Starts a worker for one that died while it started; what it can say itself is the same for all."""
        if isinstance(error, RayTaskError):
            raise _told(error) from error
        if not isinstance(error, RayActorError) or self._failures >= _DEATHS_IN_A_ROW:
            raise ClusterError(f"a worker could not be started: {_gist(error)}") from error
        self._start()

    def _replace(self, reader: Any, error: RayError) -> None:  # noqa: ANN401
        with self._lock:
            if self._stopped:
                raise JobError("the job has been stopped") from error
            self._alive.discard(reader)
            self._ready -= 1
        _log.warning("a worker of the cluster has died, another reads in its place: %s", _gist(error))
        ray.kill(reader)  # it may live and only be out of reach
        self._start()

    def _tell_if_none(self) -> None:
        with self._lock:
            if self._ready or time.monotonic() - self._told < _TELL_SECONDS:
                return
            self._told = time.monotonic()
        free = ray.available_resources()
        cores, gpus = (int(free.get(name, 0)) for name in ("CPU", "GPU"))
        _log.warning("waiting for a worker to start: the cluster has %d CPUs and %d GPUs free", cores, gpus)


def _check_seen(picture: Picture, outcome: Outcome) -> None:
    """Tells a picture that is missing from one that only the node misses, whose row would be wrong.

    Raises:
        JobError: If it is there.
    """
    missed = isinstance(outcome, RowError) and outcome.code in _MISSED and not is_uri(picture.source)
    if missed and os.access(picture.source, os.R_OK):
        raise JobError(
            f"{picture.source} is here, but a node of the cluster cannot read it: pictures must lie where all nodes"
            " find them under the same path, or be URIs"
        )


def _told(error: RayTaskError) -> BaseException:
    """Returns what was wrong within the worker."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, GlyphlineError) else error


def _gist(error: BaseException) -> str:
    """Returns first and last line of what Ray says, which may hold a page of traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[0] if len(lines) == 1 else f"{lines[0]} {lines[-1]}"
