"""Spans of OpenTelemetry: one for each call, one for each of its images, and one for each stage of an image.

Needs the extra `tracing`. Where spans go, and how many, is up to OpenTelemetry's own `OTEL_*` variables.
"""

# Handlers of any service pass through here: their messages have no type in common.
# ruff: noqa: ANN401

from __future__ import annotations

import asyncio
import os
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import grpc

from glyphline.models.decoding.readings import Reading
from glyphline.service.errors import SettingError
from glyphline.service.grpc_metrics import call_status
from glyphline.service.interceptors import Handler, WrappingInterceptor, behaviour_of, with_behaviour
from glyphline.service.logs import add_log_fields
from glyphline.service.security.callers import client_of
from glyphline.service.spans import RECORDER

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from glyphline.service.batcher import Done, Item

__all__ = ["TracingInterceptor", "open_tracing"]

_TRACED = ("/glyphline.", "/inference.")
_SERVER_FAULTS = frozenset(
    {
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
_CLOSE_MILLISECONDS = 5000


def open_tracing() -> TracingInterceptor:
    """Makes what sends spans to where OpenTelemetry's variables say; unset, to localhost:4317.

    Raises:
        SettingError: If the extra is not installed.
    """
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        raise SettingError("--tracing needs OpenTelemetry: pip install 'glyphline[tracing]'")
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    if "service.name" not in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        os.environ.setdefault("OTEL_SERVICE_NAME", "glyphline")
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return TracingInterceptor(provider)


class TracingInterceptor(WrappingInterceptor):
    """Makes a span of every call of ours, below the span that its metadata names as W3C's `traceparent`.

    Args:
        provider: Takes the spans.
    """

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

        super().__init__()
        self._provider = provider
        self._tracer = provider.get_tracer("glyphline.service")
        self._propagator = TraceContextTextMapPropagator()

    def wrap(self, path: str, handler: Handler) -> Handler:
        """Wraps the handler of a method."""
        from opentelemetry.trace import SpanKind, Status, StatusCode, format_trace_id  # noqa: PLC0415

        if not path.startswith(_TRACED):
            return handler
        behaviour = behaviour_of(handler)
        _, service, method = path.split("/", 2)
        attributes = {"rpc.system": "grpc", "rpc.service": service, "rpc.method": method}

        async def traced(request: Any, context: Any) -> Any:
            headers = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
            with self._tracer.start_as_current_span(
                path[1:],
                context=self._propagator.extract(headers),
                kind=SpanKind.SERVER,
                attributes={**attributes, "glyphline.client": client_of(context)},
                record_exception=False,  # what it says stays in the log
                set_status_on_exception=False,
            ) as span:
                add_log_fields(trace_id=format_trace_id(span.get_span_context().trace_id))
                if span.is_recording():
                    RECORDER.set(self._record)
                code = grpc.StatusCode.OK
                try:
                    return await behaviour(request, context)
                except asyncio.CancelledError:
                    code = grpc.StatusCode.CANCELLED
                    raise
                except BaseException:
                    code = call_status(context) or grpc.StatusCode.UNKNOWN
                    raise
                finally:
                    span.set_attribute("rpc.grpc.status_code", code.value[0])
                    if code in _SERVER_FAULTS:
                        span.set_status(Status(StatusCode.ERROR, code.name))

        return with_behaviour(handler, traced)

    async def close(self) -> None:
        """Sends what has not been sent."""
        await asyncio.to_thread(self._provider.force_flush, _CLOSE_MILLISECONDS)
        await asyncio.to_thread(self._provider.shutdown)

    def _record(self, item: Item, done: Done) -> None:
        """Makes the spans of an image that has just been read. Their lengths were measured; they are laid end to end.

        The stages are those of the whole batch that the image was in, as it had to wait for all of them.
        """
        from opentelemetry.trace import set_span_in_context  # noqa: PLC0415

        end = time.time_ns()
        begun = end - _nanoseconds(done.inference_seconds)
        queued = begun - _nanoseconds(done.queue_seconds)
        attributes: dict[str, str | int | bool] = {
            "glyphline.request_id": item.request_id,
            "glyphline.model": item.model.name,
            "glyphline.model_version": str(item.model.version),
            "glyphline.decoder": item.decoder,
            "glyphline.batch_size": done.batch_size,
            "glyphline.read": isinstance(done.result, Reading),
        }
        image = self._tracer.start_span("image", start_time=queued, attributes=attributes)
        parent = set_span_in_context(image)
        at = queued
        for stage, seconds in {"queue": done.queue_seconds, **done.stages}.items():
            span = self._tracer.start_span(stage, context=parent, start_time=at)
            at = min(end, at + _nanoseconds(seconds))
            span.end(end_time=at)
        image.end(end_time=end)


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
