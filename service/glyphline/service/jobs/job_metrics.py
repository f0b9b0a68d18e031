"""A job's metrics for Prometheus: on a port while it runs, in a text file for the node exporter, or pushed."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from prometheus_client import CollectorRegistry, write_to_textfile
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from glyphline.service.jobs.errors import OutputError
from glyphline.service.jobs.job_push import Pusher
from glyphline.service.jobs.tally import Tally
from glyphline.service.metrics_endpoint import MetricsEndpoint

__all__ = ["JobMetrics"]

_SECONDS = 15.0  # between two writings of the file


class JobMetrics(Collector):
    """What a job tells of itself while it runs, and what it last told.

    Args:
        host: Address to listen on.
        port: Port to listen on; 0 for any, None for none.
        textfile: File that is written every few seconds and at the end; None for none.
        gateway: Pushgateway that is told every few seconds and at the end; None for none.
        output: Where the rows go, which tells the gateway this job from others.

    Attributes:
        port: The port that it listens on.

    Raises:
        OutputError: If the file cannot be written, or the gateway does not answer.
        StartError: If the port cannot be had.
    """

    def __init__(
        self, host: str, port: int | None, textfile: Path | None, gateway: str | None = None, output: str = ""
    ) -> None:
        self._tally = Tally()
        self._running = True
        self._changed = time.time()
        self._textfile = textfile
        self._written = 0.0
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._write()
        self._pusher = None if gateway is None else Pusher(gateway, self._registry, output)
        self._endpoint = None if port is None else MetricsEndpoint(host, port, self._registry)
        self.port = None if self._endpoint is None else self._endpoint.port

    def __enter__(self) -> Self:
        """Returns the metrics."""
        return self

    def update(self, tally: Tally) -> None:
        """Takes new counts."""
        self._tally = tally
        self._changed = time.time()
        if time.monotonic() - self._written >= _SECONDS:
            self._write()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Says that the job has ended; the file stays, and what was pushed."""
        self._running = False
        if self._pusher is not None:
            self._pusher.close()
        self._write()
        if self._endpoint is not None:
            asyncio.run(self._endpoint.close())

    def collect(self) -> Iterator[Metric]:
        """Builds the metrics."""
        tally = self._tally
        images = CounterMetricFamily("glyphline_job_images", "Rows of the job.", labels=["outcome"])
        images.add_metric(["read"], tally.images - tally.failed)
        images.add_metric(["failed"], tally.failed)
        yield images
        errors = CounterMetricFamily("glyphline_job_errors", "Images that could not be read.", labels=["code"])
        for code, count in sorted(tally.errors.items()):
            errors.add_metric([code], count)
        yield errors
        yield CounterMetricFamily("glyphline_job_seconds", "Time that the job has run.", value=tally.seconds)
        if (cer := tally.cer) is not None:
            yield GaugeMetricFamily("glyphline_job_character_error_rate", "Against the references.", value=cer)
        yield GaugeMetricFamily("glyphline_job_running", "Whether the job runs.", value=float(self._running))
        yield GaugeMetricFamily("glyphline_job_changed_timestamp_seconds", "Time of the last row.", value=self._changed)

    def _write(self) -> None:
        self._written = time.monotonic()
        if self._textfile is None:
            return
        try:
            write_to_textfile(os.fspath(self._textfile), self._registry)
        except OSError as error:
            raise OutputError(f"--metrics-textfile {self._textfile}: {error.strerror}") from error
