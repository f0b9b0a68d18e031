"""Whether a server answers for its health, and how fast, while `servers.py` puts a load on it."""

from __future__ import annotations

import http.client
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

import grpc

EVERY_SECONDS = 0.05
LONGEST_SECONDS = 2.0


class Check(Protocol):
    """A way to ask a server for its health."""

    def ask(self, timeout: float) -> str:
        """Asks once; returns what was wrong, or nothing."""
        ...

    def close(self) -> None:
        """Closes the connection."""
        ...


class GrpcCheck:
    """A call whose request is empty and whose answer, if all is well, holds certain bytes."""

    def __init__(self, target: str, method: str, well: bytes) -> None:
        """Prepares the call."""
        self._channel = grpc.insecure_channel(target)
        self._call = self._channel.unary_unary(method, request_serializer=_as_it_is, response_deserializer=_as_it_is)
        self._well = well

    def ask(self, timeout: float) -> str:
        """Asks once; returns what was wrong, or nothing."""
        try:
            answer: bytes = self._call(b"", timeout=timeout, wait_for_ready=True)
        except grpc.RpcError as error:
            return str(error)
        return "" if self._well in answer else f"not well: {answer!r}"

    def close(self) -> None:
        """Closes the channel."""
        self._channel.close()


class HttpCheck:
    """A GET whose status, if all is well, is 200; each over a connection of its own, as probes do."""

    def __init__(self, target: str, path: str) -> None:
        """Keeps the address."""
        self._target, self._path = target, path

    def ask(self, timeout: float) -> str:
        """Asks once; returns what was wrong, or nothing."""
        connection = http.client.HTTPConnection(self._target, timeout=timeout)
        try:
            connection.request("GET", self._path)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            return str(error) or type(error).__name__
        finally:
            connection.close()
        return "" if status == 200 else f"HTTP {status}"

    def close(self) -> None:
        """Has nothing to close."""


@dataclass(slots=True)
class HealthWatch:
    """Asks for health again and again, in a thread, for as long as the context lasts.

    Attributes:
        check: What asks.
        latencies: Seconds of each answer.
        failures: What was wrong, each time that something was.
    """

    check: Check
    latencies: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Begins to ask."""
        self._thread = threading.Thread(target=self._run, name="health")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops asking."""
        self._stop.set()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        while True:
            begun = time.perf_counter()
            wrong = self.check.ask(LONGEST_SECONDS)
            if wrong:
                self.failures.append(wrong)
            else:
                self.latencies.append(time.perf_counter() - begun)
            if self._stop.wait(EVERY_SECONDS):
                return


def _as_it_is(content: bytes) -> bytes:
    return content
