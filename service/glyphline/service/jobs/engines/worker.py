"""What runs inside one worker process: one recogniser with one thread, fed with pictures."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection
from pathlib import Path

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding import DecodingOptions
from glyphline.models.errors import GlyphlineError, ImageError
from glyphline.models.image import GreyImage, ImageLimits
from glyphline.models.manifest import Precision
from glyphline.models.recognizer import Recognizer
from glyphline.models.session import Device, Provider
from glyphline.service.jobs.pictures import Content, Picture, fetch
from glyphline.service.jobs.rows import Outcome, RowError

# Compressed bytes that are held at once: files of 20 MB must not add up to a whole batch of them.
# Pixels of strips that were cut from pages count alike.
_BATCH_BYTES = 32 * 2**20


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker needs to know; travels to it once, when it starts.

    Attributes:
        bundle: Folder of the bundle.
        device: Where the network runs.
        allow_cpu_fallback: Whether to go on with the CPU where the device is missing.
        options: How to decode.
        limits: Largest image that is read.
        max_batch: Most images in one run of the network.
        provider: What runs the network on its device.
        precision: Which variant of the network.
    """

    bundle: Path
    device: Device = "cpu"
    allow_cpu_fallback: bool = False
    options: DecodingOptions = field(default_factory=DecodingOptions)
    limits: ImageLimits = field(default_factory=ImageLimits)
    max_batch: int = 32
    provider: Provider = "onnxruntime"
    precision: Precision = "fp32"


class _State:
    """The worker's one recogniser; module state is the only place an executor's task can find it again."""

    settings: WorkerSettings
    recognizer: Recognizer | None = None


def start(settings: WorkerSettings) -> None:
    """Prepares this process; the recogniser is loaded by the first task, whose result can carry an error."""
    _State.settings = settings
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    """Ends this process when its parent is gone; without this a killed job would leave its workers behind."""
    connection.wait([sentinel])
    os._exit(1)


def read_pictures(pictures: Sequence[Picture]) -> list[Outcome]:
    """Reads pictures from wherever they lie.

    Returns:
        One outcome per picture, in order.

    Raises:
        GlyphlineError: If the bundle cannot be loaded or does not know the options.
    """
    settings, recognizer = _State.settings, load()
    return [outcome for batch in _batches(pictures, settings) for outcome in _recognize(recognizer, batch, settings)]


def load() -> Recognizer:
    """Returns this process's recogniser, which is loaded once.

    Raises:
        GlyphlineError: If the bundle or its device is at fault.
    """
    if _State.recognizer is None:
        settings = _State.settings
        _State.recognizer = Recognizer.load(
            load_bundle(settings.bundle),
            device=settings.device,
            threads=1,
            allow_cpu_fallback=settings.allow_cpu_fallback,
            provider=settings.provider,
            precision=settings.precision,
        )
    return _State.recognizer


def _batches(pictures: Sequence[Picture], settings: WorkerSettings) -> Iterator[list[Content]]:
    batch: list[Content] = []
    held = 0
    for picture in pictures:
        content = fetch(picture, settings.limits)
        batch.append(content)
        held += _size(content)
        if held >= _BATCH_BYTES:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def _size(content: Content) -> int:
    if isinstance(content, RowError):
        return 0
    return content.pixels.size if isinstance(content, GreyImage) else len(content)


def _recognize(recognizer: Recognizer, contents: Sequence[Content], settings: WorkerSettings) -> Iterator[Outcome]:
    """Yields one outcome per content, in order: the errors that are there already, and readings between them."""
    images = [content for content in contents if not isinstance(content, RowError)]
    readings = iter(_read_images(recognizer, images, settings))
    for content in contents:
        yield content if isinstance(content, RowError) else next(readings)


def _read_images(
    recognizer: Recognizer, images: Sequence[bytes | GreyImage], settings: WorkerSettings
) -> list[Outcome]:
    try:
        outcomes = recognizer.recognize(images, settings.options, limits=settings.limits, max_batch=settings.max_batch)
    except GlyphlineError:
        raise
    except Exception as error:
        # Not foreseen, memory running out for one picture among them. The job is long: find the image and go on.
        if len(images) == 1:
            return [RowError("internal_error", f"{type(error).__name__}: {error}")]
        return [outcome for image in images for outcome in _read_images(recognizer, [image], settings)]
    return [RowError.of(outcome) if isinstance(outcome, ImageError) else outcome for outcome in outcomes]
