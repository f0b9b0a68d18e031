"""The `grpc_server_*` metrics that dashboards of the gRPC ecosystem expect, for asyncio servers."""

# Handlers of any service pass through here: their messages have no type in common.
# ruff: noqa: ANN401

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from prometheus_client import CollectorRegistry, Counter, Histogram

from glyphline.service.interceptors import Handler, WrappingInterceptor, behaviour_of, kind_of, with_behaviour

__all__ = ["MetricsInterceptor", "call_status"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LABELS = ("grpc_type", "grpc_service", "grpc_method")
_CODES = {code.value[0]: code for code in grpc.StatusCode}


@dataclass(frozen=True, slots=True)
class _Method:
    """The labels of one method."""

    type: str
    service: str
    name: str

    @classmethod
    def of(cls, path: str, handler: Handler) -> Self:
        """Names the method at a path."""
        _, service, name = path.split("/", 2)
        return cls(kind_of(handler.request_streaming, handler.response_streaming), service, name)

    @property
    def labels(self) -> tuple[str, str, str]:
        return self.type, self.service, self.name


@dataclass(frozen=True, slots=True)
class _Series:
    """The series of one method. Each is looked up by its labels once: that takes longer than to count."""

    started: Counter
    received: Counter
    sent: Counter
    seconds: Histogram
    handled: Callable[[grpc.StatusCode], Counter]


class MetricsInterceptor(WrappingInterceptor):
    """Counts calls and messages, and times calls, of every method that the server has.

    Calls of methods that it does not have are not counted: their names are the caller's to choose.

    Args:
        registry: Where the metrics are registered.
        services: Those whose series are made at once, so that a rate over the first calls is right.

    Attributes:
        in_progress: Calls that have begun and not ended.
    """

    def __init__(self, registry: CollectorRegistry, services: Iterable[ServiceDescriptor] = ()) -> None:
        super().__init__()
        self.in_progress = 0
        self._started = Counter("grpc_server_started_total", "Calls that began.", _LABELS, registry=registry)
        self._handled = Counter(
            "grpc_server_handled_total", "Calls that ended, by status.", (*_LABELS, "grpc_code"), registry=registry
        )
        self._received = Counter(
            "grpc_server_msg_received_total", "Messages that clients sent.", _LABELS, registry=registry
        )
        self._sent = Counter("grpc_server_msg_sent_total", "Messages sent to clients.", _LABELS, registry=registry)
        self._seconds = Histogram(
            "grpc_server_handling_seconds",
            "Time from a call's begin to its end.",
            _LABELS,
            buckets=_SECONDS,
            registry=registry,
        )

        for service in services:
            for each in service.methods:
                kind = kind_of(each.client_streaming, each.server_streaming)
                self._series(_Method(kind, service.full_name, each.name)).handled(grpc.StatusCode.OK)

    def _series(self, method: _Method) -> _Series:
        """Makes the series of a method, or finds them again."""
        return _Series(
            started=self._started.labels(*method.labels),
            received=self._received.labels(*method.labels),
            sent=self._sent.labels(*method.labels),
            seconds=self._seconds.labels(*method.labels),
            handled=cache(lambda code: self._handled.labels(*method.labels, code.name)),
        )

    def wrap(self, path: str, handler: Handler) -> Handler:
        """Wraps the handler of a method."""
        series = self._series(_Method.of(path, handler))
        behaviour = behaviour_of(handler)

        def receiving(request: Any) -> Any:
            if handler.request_streaming:
                return _counted(request, series.received)
            series.received.inc()
            return request

        async def answer(request: Any, context: Any) -> Any:
            with self._measured(series, context):
                response = await behaviour(receiving(request), context)
                series.sent.inc()
                return response

        async def answer_stream(request: Any, context: Any) -> None:
            with self._measured(series, context):
                counting = _CountingContext(context, series.sent)
                answers = behaviour(receiving(request), counting)
                if hasattr(answers, "__aiter__"):
                    async for each in answers:
                        await counting.write(each)
                else:
                    await answers

        return with_behaviour(handler, answer_stream if handler.response_streaming else answer)

    def count_refused(self, path: str, handler: Handler, code: grpc.StatusCode) -> None:
        """Counts a call that was refused before it came to its handler."""
        series = self._series(_Method.of(path, handler))
        series.started.inc()
        series.handled(code).inc()

    @contextmanager
    def _measured(self, series: _Series, context: Any) -> Iterator[None]:
        series.started.inc()
        self.in_progress += 1
        began = time.perf_counter()
        code = grpc.StatusCode.OK
        try:
            yield
            code = call_status(context) or grpc.StatusCode.OK
        except asyncio.CancelledError:
            remaining = context.time_remaining()
            late = remaining is not None and remaining <= 0
            code = grpc.StatusCode.DEADLINE_EXCEEDED if late else grpc.StatusCode.CANCELLED
            raise
        except BaseException:
            code = call_status(context) or grpc.StatusCode.UNKNOWN
            raise
        finally:
            self.in_progress -= 1
            series.handled(code).inc()
            series.seconds.observe(time.perf_counter() - began)


class _CountingContext:
    """A call's context that counts the messages written to it."""

    def __init__(self, context: Any, sent: Counter) -> None:
        self._context = context
        self._sent = sent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def write(self, message: Any) -> None:
        await self._context.write(message)
        self._sent.inc()


async def _counted(requests: Any, received: Counter) -> AsyncIterator[Any]:
    async for request in requests:
        received.inc()
        yield request


def call_status(context: Any) -> grpc.StatusCode | None:
    """Returns the status that the handler set, which gRPC gives as a number or as a member of its enumeration."""
    code = context.code()
    return _CODES.get(code) if isinstance(code, int) else code
