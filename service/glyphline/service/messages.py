"""What the front process and its workers say to each other; all of it is pickled through one pipe per worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.decoding.readings import Reading
from glyphline.models.errors import ImageError
from glyphline.models.image import ImageLimits
from glyphline.models.manifest import Precision
from glyphline.models.session import Device, Provider

__all__ = [
    "Beat",
    "Fault",
    "Job",
    "JobResult",
    "ModelKey",
    "Ping",
    "Pong",
    "Ready",
    "Refused",
    "Unload",
    "WorkerConfig",
]

ModelKey = tuple[str, int]  # name and version


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What a worker is to hold.

    Attributes:
        models: Folder of every bundle.
        device: What runs the networks; of several GPUs, workers take one each, in turns.
        allow_cpu_fallback: Whether a GPU may be replaced by the CPU.
        limits: How large an image may be.
        max_batch: Most images of one run of a network.
        lexicons: File of every lexicon, by name.
        language_models: File of every language model, by name.
        provider: What runs the networks on the device.
        precision: Which variant of the networks.
        threads: Threads that images are decoded with.
        max_gpu_bytes: Most bytes that each graph may keep on a GPU; None for as many as it takes.
        manifests: Hash of the manifest of a folder, which must not have changed since; of none that are not here.
        beat_seconds: How often the worker says that it lives while it reads a batch.
    """

    models: tuple[Path, ...]
    device: Device
    allow_cpu_fallback: bool
    limits: ImageLimits
    max_batch: int
    lexicons: Mapping[str, Path] = field(default_factory=dict)
    language_models: Mapping[str, Path] = field(default_factory=dict)
    provider: Provider = "onnxruntime"
    precision: Precision = "fp32"
    threads: int = 1
    max_gpu_bytes: int | None = None
    manifests: Mapping[Path, str] = field(default_factory=dict)
    beat_seconds: float = 2.5


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker has loaded, checked and warmed its models.

    Attributes:
        providers: What runs each model.
    """

    providers: dict[ModelKey, str]


@dataclass(frozen=True, slots=True)
class Refused:
    """The worker cannot load its models, for a reason that its user can mend.

    Attributes:
        message: The reason.
        folder: The bundle that is at fault; None if none is.
        lacks_device: Whether it is the device that is not there.
    """

    message: str
    folder: Path | None = None
    lacks_device: bool = False


@dataclass(frozen=True, slots=True)
class Ping:
    """Asks a worker that has nothing to do whether it lives."""


@dataclass(frozen=True, slots=True)
class Pong:
    """The worker does."""


@dataclass(frozen=True, slots=True)
class Beat:
    """The worker is still at work on its batch; more will follow."""


@dataclass(frozen=True, slots=True)
class Unload:
    """Models that nobody reads with any more; the worker answers what it still holds.

    Attributes:
        models: The models.
    """

    models: tuple[ModelKey, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """A batch to read.

    Attributes:
        model: Which model reads it.
        options: How. Lexicons and language models that the worker holds are named in them.
        images: The image files.
    """

    model: ModelKey
    options: DecodingOptions
    images: list[bytes]


@dataclass(frozen=True, slots=True)
class Fault:
    """An image on which Glyphline itself failed.

    Attributes:
        traceback: Where and why, for the log.
    """

    traceback: str


@dataclass(frozen=True, slots=True)
class JobResult:
    """What became of a batch.

    Attributes:
        outcomes: One per image, in order.
        seconds: Time that the whole took.
        stages: Time spent in each stage.
        runs: Images and share of padding of every run of a network.
    """

    outcomes: list[Reading | ImageError | Fault]
    seconds: float
    stages: dict[str, float] = field(default_factory=dict)
    runs: list[tuple[int, float]] = field(default_factory=list)
