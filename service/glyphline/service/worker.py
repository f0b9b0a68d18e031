"""The worker process: holds the recognisers and reads one batch after another.

It ends when its pipe closes, so that it never outlives the front process, and ignores the signals that stop a server,
so that the front process can finish what is in progress. While it reads, a thread of it says now and then that it
lives; while it waits, it answers when it is asked.
"""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.decoding.readings import Reading
from glyphline.models.devices import Device, split_devices
from glyphline.models.errors import BundleError, DeviceError, GlyphlineError, ImageError
from glyphline.models.image import GreyImage
from glyphline.models.manifest import MANIFEST_NAME, Manifest
from glyphline.models.recognizer import MAX_COLUMNS, Recognizer, StageTimings
from glyphline.service.guides import Guides, load_guides
from glyphline.service.memory import keep_what_is_here
from glyphline.service.messages import (
    Beat,
    Fault,
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
from glyphline.service.output import divert_output, quiet_decoders

__all__ = ["main"]

# The front process has little to do and all wait for it: under full load it must not queue for a core with the workers.
_NICENESS = 5
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the front process's affair
_USUAL_WIDTHS = (64, 256)

Recognizers = dict[ModelKey, Recognizer]


def main(connection: Connection, config: WorkerConfig, output: Connection | None = None, index: int = 0) -> None:
    """Runs a worker until its pipe closes.

    Args:
        connection: The worker's end of the pipe.
        config: What to hold.
        output: Where standard error goes; None leaves it as it is.
        index: The worker's number; of several GPUs it says which.
    """
    if output is not None:
        divert_output(output)
    quiet_decoders()
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    os.nice(_NICENESS)
    devices = split_devices(config.device)
    recognizers: Recognizers = {}
    folder: Path | None = None
    try:
        guides = load_guides(config.lexicons, config.language_models)
        for folder in config.models:
            recognizer = _load(folder, config, guides, devices[index % len(devices)])
            manifest = recognizer.bundle.manifest
            recognizers[manifest.name, manifest.version] = recognizer
    except DeviceError as error:
        connection.send(Refused(str(error), lacks_device=True))
        return
    except GlyphlineError as error:
        connection.send(Refused(str(error), folder))
        return
    keep_what_is_here()
    connection.send(_held(recognizers))
    pulse = _Pulse(connection, config.beat_seconds)
    while True:
        try:
            message: Job | Ping | Unload = connection.recv()
        except EOFError:
            return
        answer: JobResult | Pong | Ready
        match message:
            case Job():
                with pulse.beating():
                    answer = _serve(recognizers, message, config, guides)
            case Unload(models):
                for key in models:
                    recognizers.pop(key, None)
                keep_what_is_here()
                answer = _held(recognizers)
            case Ping():
                answer = Pong()
        connection.send(answer)


class _Pulse:
    """A thread that says that the process lives, while it is at work; else nobody would listen.

    Args:
        connection: Where it is said. What is sent within `beating` needs no care; nothing else must be.
        seconds: How often.
    """

    def __init__(self, connection: Connection, seconds: float) -> None:
        self._connection = connection
        self._seconds = seconds
        self._lock = threading.Lock()
        self._working = False
        threading.Thread(target=self._run, name="glyphline-pulse", daemon=True).start()

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Beats until it is left."""
        with self._lock:
            self._working = True
        try:
            yield
        finally:
            with self._lock:
                self._working = False

    def _run(self) -> None:
        while True:
            time.sleep(self._seconds)
            with self._lock:
                if self._working:
                    try:
                        self._connection.send(Beat())
                    except OSError:  # the front process is gone, and this one goes, too
                        return


def _held(recognizers: Recognizers) -> Ready:
    return Ready({key: recognizer.provider for key, recognizer in recognizers.items()})


def _load(folder: Path, config: WorkerConfig, guides: Guides, device: Device) -> Recognizer:
    """Loads a model, lets it read its probe, and warms it."""
    bundle = load_bundle(folder)
    expected = config.manifests.get(folder)
    if expected and hashlib.sha256(bundle.file(MANIFEST_NAME).read_bytes()).hexdigest() != expected:
        raise BundleError(f"{folder} has changed since the server loaded it; put it back, and what is new beside it")
    recognizer = Recognizer.load(
        bundle,
        device=device,
        threads=config.threads,
        allow_cpu_fallback=config.allow_cpu_fallback,
        provider=config.provider,
        precision=config.precision,
        memory=config.max_gpu_bytes,
    )
    _warm(recognizer, config.max_batch)
    guides.bind(recognizer.alphabet)
    return recognizer


def _warm(recognizer: Recognizer, max_batch: int) -> None:
    """Pays now for what the first requests would pay for: memory, and kernels for every shape where they are made so.

    The largest run comes first: what it takes is kept and is enough for all others, so memory stays as it is from here.

    Raises:
        BundleError: If the model cannot be run in one of them.
    """
    manifest = recognizer.bundle.manifest
    widest = manifest.image.max_width
    largest = max_batch, max(MAX_COLUMNS // max_batch, _USUAL_WIDTHS[0])
    shapes = recognizer.shapes(max_batch) or [largest, *((1, width) for width in _USUAL_WIDTHS)]
    runs = [(size, min(width, widest), DecodingOptions("greedy")) for size, width in shapes]
    for size, width, options in [*runs, (1, min(_USUAL_WIDTHS[0], widest), DecodingOptions("beam"))]:
        try:
            recognizer.recognize([_blank(manifest, width)] * size, options, max_batch=max_batch)
        except Exception as error:
            raise BundleError(
                f"{recognizer.bundle.path}: the model cannot be run with {size} images of width {width}: {error}"
            ) from error


def _blank(manifest: Manifest, width: int) -> GreyImage:
    """Returns an image that is `width` wide after it is brought to the model's form."""
    inner = max(1, width - 2 * manifest.image.padding)
    return GreyImage(np.full((manifest.image.height, inner), 255, dtype=np.uint8))


def _serve(recognizers: Recognizers, job: Job, config: WorkerConfig, guides: Guides) -> JobResult:
    """Reads a batch with the model that it is for."""
    recognizer = recognizers.get(job.model)
    if recognizer is None:
        return JobResult([Fault(f"this worker does not hold {job.model}")] * len(job.images), 0.0)
    return _read(recognizer, job, config, guides)


def _read(recognizer: Recognizer, job: Job, config: WorkerConfig, guides: Guides) -> JobResult:
    """Reads a batch. If that fails as a whole, each image is read alone, so that only the culprit fails."""
    started = time.perf_counter()
    timings = StageTimings()
    options = guides.fill(job.options)
    outcomes: list[Reading | ImageError | Fault] = []

    def read(images: list[bytes]) -> list[Reading | ImageError]:
        return recognizer.recognize(images, options, limits=config.limits, max_batch=config.max_batch, timings=timings)

    try:
        outcomes.extend(read(job.images))
    except Exception:
        for image in job.images:
            try:
                outcomes.extend(read([image]))
            except Exception:
                outcomes.append(Fault(traceback.format_exc()))
    return JobResult(
        outcomes=outcomes,
        seconds=time.perf_counter() - started,
        stages={"decode_image": timings.decode_image, "infer": timings.infer, "search": timings.search},
        runs=list(timings.batches),
    )
