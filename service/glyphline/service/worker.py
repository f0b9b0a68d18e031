"""The worker process: holds the recognisers and reads one batch after another.

It ends when its pipe closes, so that it never outlives the front process, and ignores the signals that stop a server,
so that the front process can finish what is in progress.
"""

from __future__ import annotations

import signal
import time
import traceback
import warnings
from multiprocessing.connection import Connection

import numpy as np

from glyphline.models.bundle import Manifest, load_bundle
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.decoding.readings import Reading
from glyphline.models.errors import GlyphlineError, ImageError
from glyphline.models.image import GreyImage
from glyphline.models.recognizer import BUCKET_STEP, Recognizer, StageTimings
from glyphline.service.guides import Guides, load_guides
from glyphline.service.messages import Fault, Job, JobResult, ModelKey, Ready, Refused, WorkerConfig

__all__ = ["main"]

_CPU_WARM_UP_WIDTHS = (64, 256)


def main(connection: Connection, config: WorkerConfig) -> None:
    """Runs a worker until its pipe closes.

    Args:
        connection: The worker's end of the pipe.
        config: What to hold.
    """
    warnings.filterwarnings("ignore", module=r"PIL\.")  # whoever sends a damaged file is told by its error
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    try:
        guides = load_guides(config.lexicons, config.language_models)
        recognizers = _load(config, guides)
    except GlyphlineError as error:
        connection.send(Refused(str(error)))
        return
    connection.send(Ready({key: recognizer.provider for key, recognizer in recognizers.items()}))
    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        connection.send(_read(recognizers[job.model], job, config, guides))


def _load(config: WorkerConfig, guides: Guides) -> dict[ModelKey, Recognizer]:
    """Loads every model, lets it read its probe, and warms it."""
    recognizers = {}
    for folder in config.models:
        recognizer = Recognizer.load(
            load_bundle(folder),
            device=config.device,
            threads=1,
            allow_cpu_fallback=config.allow_cpu_fallback,
            provider=config.provider,
            precision=config.precision,
        )
        _warm(recognizer, config.max_batch)
        guides.bind(recognizer.alphabet)
        manifest = recognizer.bundle.manifest
        recognizers[manifest.name, manifest.version] = recognizer
    return recognizers


def _warm(recognizer: Recognizer, max_batch: int) -> None:
    """Pays now for what the first requests would pay for: memory, and on a GPU a choice of kernels for every shape.

    OpenVINO makes kernels for every shape, too, which takes a moment each: the rest are made when they first come.
    """
    manifest = recognizer.bundle.manifest
    on_cpu = recognizer.provider.startswith(("CPUExecutionProvider", "OpenVINO"))
    widths = _CPU_WARM_UP_WIDTHS if on_cpu else range(BUCKET_STEP, manifest.image.max_width + 1, BUCKET_STEP)
    sizes = (1,) if on_cpu else (1, max_batch)
    for width in widths:
        for size in sizes:
            recognizer.recognize([_blank(manifest, width)] * size, DecodingOptions("greedy"), max_batch=max_batch)
    recognizer.recognize([_blank(manifest, _CPU_WARM_UP_WIDTHS[0])], DecodingOptions("beam"), max_batch=max_batch)


def _blank(manifest: Manifest, width: int) -> GreyImage:
    """Returns an image that is `width` wide after it is brought to the model's form."""
    inner = max(1, min(width, manifest.image.max_width) - 2 * manifest.image.padding)
    return GreyImage(np.full((manifest.image.height, inner), 255, dtype=np.uint8))


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
