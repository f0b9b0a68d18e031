"""Reads pictures in this process: no server, no grpc."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from glyphline.cli.readers import Picture, Reader
from glyphline.models.bundle import Bundle
from glyphline.models.decoding import DecodingOptions
from glyphline.models.errors import ImageError
from glyphline.models.image import ImageLimits
from glyphline.models.manifest import Precision
from glyphline.models.recognizer import Recognizer
from glyphline.models.session import Device, Provider, available_threads
from glyphline.service.jobs import Row, RowError


@contextmanager
def local_reader(
    bundle: Bundle,
    options: DecodingOptions,
    limits: ImageLimits,
    *,
    device: Device,
    allow_cpu_fallback: bool,
    provider: Provider,
    precision: Precision,
) -> Iterator[Reader]:
    """Loads a bundle's networks and yields what reads pictures with it."""
    recognizer = Recognizer.load(
        bundle,
        device=device,
        threads=available_threads(),
        allow_cpu_fallback=allow_cpu_fallback,
        provider=provider,
        precision=precision,
    )

    def read(pictures: Sequence[Picture]) -> list[Row]:
        contents = [picture.content for picture in pictures if isinstance(picture.content, bytes)]
        readings = iter(recognizer.recognize(contents, options, limits=limits))
        rows = []
        for picture in pictures:
            outcome = next(readings) if isinstance(picture.content, bytes) else picture.content
            if isinstance(outcome, ImageError):
                outcome = RowError.of(outcome)
            rows.append(Row(picture.source, outcome, bundle.manifest.name, bundle.manifest.version))
        return rows

    yield read
