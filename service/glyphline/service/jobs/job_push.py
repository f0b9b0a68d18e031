"""Pushes a job's metrics to a Prometheus Pushgateway, for machines that nobody scrapes."""

from __future__ import annotations

import logging
import socket
import threading
from http.client import HTTPException
from urllib.error import HTTPError, URLError

from prometheus_client import CollectorRegistry, push_to_gateway

from glyphline.service.jobs.errors import OutputError

__all__ = ["Pusher"]

JOB = "glyphline_transcribe"
_SECONDS = 15.0  # between two pushes
_PATIENCE = 10.0  # for the gateway's answer
_FAILURES = (OSError, ValueError, HTTPException)  # the last is what a name that is none leads to
_log = logging.getLogger(__name__)


class Pusher:
    """Pushes every few seconds and at the end, in a thread: a gateway that is slow must not hold up the job.

    Args:
        gateway: `HOST:PORT` or URL.
        registry: The metrics.
        output: Tells this job from others of the same machine.

    Raises:
        OutputError: If nothing takes them there now; later that is only told, for the rows are worth more.
    """

    def __init__(self, gateway: str, registry: CollectorRegistry, output: str) -> None:
        self._gateway = gateway
        self._registry = registry
        self._group = {"instance": socket.gethostname(), "output": output}
        self._failing = False
        self._ended = threading.Event()
        try:
            self._push()
        except _FAILURES as error:
            raise OutputError(
                f"--metrics-push {gateway}: {_why(error)}; is a Pushgateway there? Give its HOST:PORT, or leave the "
                "option out to run without"
            ) from error
        self._thread = threading.Thread(target=self._push_on, name="glyphline-metrics-push", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Pushes what the job came to."""
        self._ended.set()
        self._thread.join()
        self._try()

    def _push_on(self) -> None:
        while not self._ended.wait(_SECONDS):
            self._try()

    def _try(self) -> None:
        try:
            self._push()
        except _FAILURES as error:
            if not self._failing:
                _log.warning("metrics could not be pushed to %s: %s; the job goes on", self._gateway, _why(error))
            self._failing = True
        else:
            self._failing = False

    def _push(self) -> None:
        push_to_gateway(self._gateway, JOB, self._registry, grouping_key=self._group, timeout=_PATIENCE)


def _why(error: Exception) -> str:
    """Says in a few words what a push failed at."""
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(error, HTTPError):
        return f"something answers, but with {error.code} {error.reason}"
    if isinstance(cause, TimeoutError):
        return "does not answer in time"
    if isinstance(cause, socket.gaierror):
        return "cannot be reached: the name of the host is not known"
    if isinstance(cause, OSError):
        return f"cannot be reached: {cause.strerror or cause}"
    return f"is no address that can be reached: {cause}"
