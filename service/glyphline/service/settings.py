"""The settings of a server: one frozen object, checked once, read from arguments and from `GLYPHLINE_*` variables."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from glyphline.models.devices import split_devices
from glyphline.models.errors import DeviceError
from glyphline.models.image import ImageLimits
from glyphline.models.manifest import Precision
from glyphline.models.session import Provider, available_threads, most_workers
from glyphline.service.addresses import is_loopback

__all__ = ["MEBIBYTE", "ServerSettings", "unknown_variables"]

MEBIBYTE = 2**20
_PREFIX = "GLYPHLINE_"
_OTHER_VARIABLES = frozenset({"GLYPHLINE_DATA_ROOT", "GLYPHLINE_TOKEN_FILE"})  # of other commands
# Kubernetes tells every container of a service that is called glyphline where it is.
_OF_KUBERNETES = re.compile(r"GLYPHLINE_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP)(_\w+)?)")


class ServerSettings(BaseSettings):
    """How a server listens, what it loads, and what it refuses.

    Every field can be set by an environment variable: `GLYPHLINE_PORT`, `GLYPHLINE_MAX_BATCH` and so on. A list is
    written with commas.

    Attributes:
        host: Address that gRPC listens on.
        port: Port of gRPC. 0: any free one.
        metrics_port: Port of `/metrics`. 0: any free one; -1: no metrics.
        metrics_host: Address that `/metrics` listens on. None: that of gRPC.
        tls_certificate: PEM file of the server's certificate and its chain. None: no TLS.
        tls_key: PEM file of its key.
        tls_client_ca: PEM file of the authorities whose clients may connect. None: clients need no certificate.
        tokens: File of the tokens that callers must have. None: callers need none.
        allow_tokens_without_tls: Whether tokens may be sent in the clear from other machines, as behind a proxy that
            ends TLS.
        workers: Worker processes. 0: one per usable core on the CPU, one on each GPU.
        device: What runs the networks: `cpu`, `cuda`, `cuda:1`, or several GPUs, `cuda:0,1`.
        max_gpu_bytes: Most memory of a GPU that each graph of a model keeps. None: as much as it takes.
        allow_cpu_fallback: Whether a server that was asked for a GPU may run on the CPU.
        provider: What runs the networks on the device.
        precision: Which variant of the networks; every model that is loaded must have it.
        model_repository: Folder of `<name>/<version>/manifest.json`. None: the models that come with Glyphline.
        models: Models to load, as `name` (its latest version and those with labels) or `name:version`. None: all names.
        reload_seconds: How often the model repository is looked at for new versions. 0: only at SIGHUP.
        lexicons: Files of one word a line, by the name that requests call them by; written `name=file`.
        language_models: ARPA files of characters, in the same way.
        max_batch: Most images that a worker gets at once.
        max_batch_pixels: Most pixels of the images that a worker gets at once; a larger image goes alone.
        max_batch_bytes: Most bytes of the images that a worker gets at once; a larger image goes alone.
        max_queue: Most images that wait for a worker; more are refused at once.
        max_queue_bytes: Most bytes of images that wait for a worker; more are refused at once.
        max_request_images: Most items of one BatchRecognize call. Where it is not given, a smaller `max_queue` counts.
        max_stream_images: Most items of one stream in progress; further ones are not read until some are answered.
        max_message_bytes: Largest message, received or sent.
        max_image_bytes: Largest image file.
        max_pixels: Largest width times height of an image.
        max_beam_width: Widest beam that a request may ask for.
        remembered_readings: How many readings can still be given a reference text.
        drain_seconds: How long a stopping server, already reported as not serving, still takes new calls.
        grace_seconds: How long calls in progress may then take to end.
        start_seconds: How long a worker may take to load its models.
        batch_seconds: How long a worker may take over a batch before it is taken for dead and replaced.
        heartbeat_seconds: How long a worker, at work or not, may give no sign of life before it is replaced.
        keepalive_seconds: Idle time after which the server pings a connection.
        min_ping_seconds: Shortest interval of pings that a client may keep.
        max_connection_age_seconds: Age at which a connection is closed, so that clients spread over replicas.
            None: never.
        max_connection_age_grace_seconds: How long the calls of an aged connection may still take.
        max_connection_calls: Most calls of one connection at once; its client holds further ones back.
        max_idle_seconds: How long a connection may have no call, and a stream no message.
        reflection: Whether the server describes its API to tools such as grpcurl.
        open_inference: Whether the Open Inference Protocol is served, too.
        log_level: Least level of log lines.
        log_sample: Share of successful calls that are logged; refusals and failures always are.
        tracing: Whether spans are sent by OpenTelemetry, which its own `OTEL_*` variables configure.
        log_format: JSON lines or plain text. `auto`: plain text on a terminal, else JSON.
    """

    model_config = SettingsConfigDict(env_prefix=_PREFIX, frozen=True, extra="forbid", protected_namespaces=())

    host: str = Field(default="127.0.0.1", min_length=1)
    port: int = Field(default=50051, ge=0, le=65535)
    metrics_port: int = Field(default=9090, ge=-1, le=65535)
    metrics_host: str | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    tokens: Path | None = None
    allow_tokens_without_tls: bool = False
    workers: int = Field(default=0, ge=0)
    device: str = "cpu"
    max_gpu_bytes: int | None = Field(default=None, ge=MEBIBYTE)
    allow_cpu_fallback: bool = False
    provider: Provider = "onnxruntime"
    precision: Precision = "fp32"
    model_repository: Path | None = None
    models: Annotated[list[str] | None, NoDecode] = None
    reload_seconds: float = Field(default=5.0, ge=0)
    lexicons: Annotated[dict[str, Path], NoDecode] = Field(default_factory=dict)
    language_models: Annotated[dict[str, Path], NoDecode] = Field(default_factory=dict)
    max_batch: int = Field(default=32, ge=1)
    max_batch_pixels: int = Field(default=16_000_000, ge=1)
    max_batch_bytes: int = Field(default=16 * MEBIBYTE, ge=1)
    max_queue: int = Field(default=1024, ge=1)
    max_queue_bytes: int = Field(default=256 * MEBIBYTE, ge=1)
    max_request_images: int = Field(default=256, ge=1)
    max_stream_images: int = Field(default=64, ge=1)
    max_message_bytes: int = Field(default=64 * MEBIBYTE, ge=1024, lt=2**31)
    max_image_bytes: int = Field(default=ImageLimits().max_bytes, ge=1)
    max_pixels: int = Field(default=ImageLimits().max_pixels, ge=1)
    max_beam_width: int = Field(default=100, ge=1)
    remembered_readings: int = Field(default=10_000, ge=0)
    drain_seconds: float = Field(default=3.0, ge=0)
    grace_seconds: float = Field(default=30.0, ge=0)
    start_seconds: float = Field(default=120.0, gt=0)
    batch_seconds: float = Field(default=60.0, gt=0)
    heartbeat_seconds: float = Field(default=15.0, gt=0)
    keepalive_seconds: float = Field(default=60.0, gt=0)
    min_ping_seconds: float = Field(default=10.0, gt=0)
    max_connection_age_seconds: float | None = Field(default=None, gt=0)
    max_connection_age_grace_seconds: float = Field(default=30.0, ge=0)
    max_connection_calls: int = Field(default=2048, ge=1)
    max_idle_seconds: float = Field(default=300.0, gt=0)
    reflection: bool = True
    open_inference: bool = False
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "json", "text"] = "auto"
    log_sample: float = Field(default=0.01, ge=0, le=1)
    tracing: bool = False

    @field_validator("models", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """Takes `a,b` for a list, as an environment variable gives it."""
        if isinstance(value, str):
            return [part for part in (part.strip() for part in value.split(",")) if part] or None
        return value or None

    @field_validator("device")
    @classmethod
    def _know_device(cls, value: str) -> str:
        """Refuses what names no device."""
        try:
            split_devices(value)
        except DeviceError as error:
            raise ValueError(str(error)) from error
        return value

    @field_validator("lexicons", "language_models", mode="before")
    @classmethod
    def _pair(cls, value: object) -> object:
        """Takes `a=file,b=file`, as an environment variable gives it, or a list of such parts."""
        if isinstance(value, str):
            value = [part for part in (part.strip() for part in value.split(",")) if part]
        if not isinstance(value, list):
            return value or {}
        pairs: dict[str, str] = {}
        for part in value:
            name, _, file = (each.strip() for each in str(part).partition("="))
            if not name or not file:
                raise ValueError(f"{part!r} should be name=file")
            if name in pairs:
                raise ValueError(f"the name {name!r} stands for two files")
            pairs[name] = file
        return pairs

    @model_validator(mode="after")
    def _keep_secrets(self) -> Self:
        """Refuses half of a TLS configuration, and tokens that anybody on the way could read."""
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("--tls-certificate and --tls-key go together; give both or neither")
        if self.tls_client_ca is not None and self.tls_certificate is None:
            raise ValueError("--tls-client-ca needs --tls-certificate and --tls-key")
        in_the_clear = self.tls_certificate is None and not self.allow_tokens_without_tls
        if self.tokens is not None and in_the_clear and not is_loopback(self.host):
            raise ValueError(
                f"--tokens without TLS would let anybody on the way to {self.host} read them; give --tls-certificate "
                "and --tls-key, or --allow-tokens-without-tls behind a proxy that ends TLS"
            )
        return self

    @field_validator("workers")
    @classmethod
    def _fit_the_machine(cls, workers: int) -> int:
        """Refuses processes by the hundred: each holds models, and the kernel would end whatever it chooses."""
        if workers > (most := most_workers()):
            raise ValueError(f"at most {most} here; as many as there are cores are fastest")
        return workers

    @model_validator(mode="after")
    def _use_every_device(self) -> Self:
        """Refuses GPUs that no worker would use."""
        count = len(split_devices(self.device))
        if 0 < self.workers < count:
            raise ValueError(f"--device {self.device} is {count} GPUs, for which --workers {self.workers} are too few")
        return self

    @model_validator(mode="after")
    def _listen_twice(self) -> Self:
        """Refuses one port for both: what binds it second would say that it is taken, and not by whom."""
        if self.port == self.metrics_port != 0 and self.metrics_host in (None, self.host):
            raise ValueError(f"--port and --metrics-port are both {self.port}: give each its own")
        return self

    @model_validator(mode="after")
    def _fit_the_queue(self) -> Self:
        """Refuses calls that are asked for and could never be taken; the default gives way to a small queue."""
        if "max_request_images" in self.model_fields_set and self.max_request_images > self.max_queue:
            raise ValueError(
                f"--max-request-images {self.max_request_images} is more than --max-queue {self.max_queue}: "
                "such a call could never be taken; lower one or raise the other"
            )
        return self

    @property
    def worker_count(self) -> int:
        """Worker processes: on the CPU one per core, unless told otherwise, and one on each GPU."""
        return self.workers or (available_threads() if self.device == "cpu" else len(split_devices(self.device)))

    @property
    def worker_threads(self) -> int:
        """Threads of a worker: one on the CPU, else its share of the cores, to decode images for the GPU."""
        return 1 if self.device == "cpu" else max(1, available_threads() // self.worker_count)

    @property
    def request_images(self) -> int:
        """Most items of one BatchRecognize call: never more than the queue could take at once."""
        return min(self.max_request_images, self.max_queue)

    @property
    def limits(self) -> ImageLimits:
        """How large an image may be."""
        return ImageLimits(max_bytes=self.max_image_bytes, max_pixels=self.max_pixels)


def unknown_variables(names: Iterable[str]) -> list[tuple[str, str]]:
    """Finds variables of the environment that look like settings and are none.

    Args:
        names: Of all variables.

    Returns:
        Each with the variable that was perhaps meant; empty where none is near.
    """
    known = [f"{_PREFIX}{field.upper()}" for field in ServerSettings.model_fields]
    others = (name for name in sorted(names) if name.upper().startswith(_PREFIX) and name.upper() not in known)
    return [
        (name, _nearest(name.upper(), known))
        for name in others
        if name not in _OTHER_VARIABLES and not _OF_KUBERNETES.fullmatch(name)
    ]


def _nearest(name: str, known: Sequence[str]) -> str:
    """Returns what was perhaps meant: what a name is the beginning of, or what is much like it; else nothing."""
    longer = (each for each in known if each.startswith(name))
    return next(longer, "") or next(iter(difflib.get_close_matches(name, known, 1, 0.8)), "")
