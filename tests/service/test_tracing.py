"""Spans: below the caller's own, one for each call, image and stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import grpc
import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs the extra `tracing`")

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
from glyphline.service.boundary import guard
from glyphline.service.client import Client
from glyphline.service.client.requests import channel_options
from glyphline.service.errors import InternalError, NotReadyError, RequestError
from glyphline.service.parsing import ParsingInterceptor
from glyphline.service.tracing import TracingInterceptor

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = (("traceparent", f"00-{TRACE}-{PARENT}-01"),)


class Failing(rpc.ModelServiceServicer):
    """Answers with the error that is asked for."""

    async def GetModel(self, request: api.GetModelRequest, context: Any) -> api.GetModelResponse:  # noqa: ANN401
        errors = {
            "fault": InternalError("secret"),
            "caller": RequestError("name", "no"),
            "busy": NotReadyError("later"),
        }

        async def answer() -> api.GetModelResponse:
            if request.name in errors:
                raise errors[request.name]
            return api.GetModelResponse()

        return await guard(context, "GetModel", "", answer())

    async def ListModels(self, request: api.ListModelsRequest, context: Any) -> api.ListModelsResponse:  # noqa: ANN401
        del request, context
        return api.ListModelsResponse()


async def spans_of(name: str, metadata: tuple[tuple[str, str], ...] = ()) -> tuple[ReadableSpan, ...]:
    """Makes one call and returns its spans."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    server = grpc.aio.server(interceptors=[TracingInterceptor(provider), ParsingInterceptor()])
    rpc.add_ModelServiceServicer_to_server(Failing(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", channel_options(2**20)) as channel:
        with suppress(grpc.RpcError):
            await channel.unary_unary(
                "/glyphline.recognition.v1.ModelService/GetModel",
                request_serializer=api.GetModelRequest.SerializeToString,
                response_deserializer=api.GetModelResponse.FromString,
            )(api.GetModelRequest(name=name), metadata=metadata, timeout=60)
    await server.stop(None)
    return exporter.get_finished_spans()


@pytest.mark.parametrize(
    ("name", "code", "failed"), [("", 0, False), ("fault", 13, True), ("caller", 3, False), ("busy", 14, True)]
)
async def test_a_call_has_one_span_with_its_status(name: str, code: int, failed: bool) -> None:
    (span,) = await spans_of(name)
    assert span.name == "glyphline.recognition.v1.ModelService/GetModel"
    assert span.attributes is not None
    assert span.attributes["rpc.grpc.status_code"] == code
    assert span.attributes["glyphline.client"] == "127.0.0.1"
    assert (span.status.status_code.name == "ERROR") is failed
    assert "secret" not in str(span.to_json())


async def test_the_span_is_below_the_callers_own() -> None:
    (span,) = await spans_of("", TRACEPARENT)
    assert span.parent is not None
    assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)
    (span,) = await spans_of("", (("traceparent", "nonsense"),))
    assert span.parent is None
    assert await spans_of("", (("traceparent", f"00-{TRACE}-{PARENT}-00"),)) == ()  # the caller wants none


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Takes spans as a collector does."""

    def __init__(self) -> None:
        self.spans: SimpleQueue[trace_pb2.Span] = SimpleQueue()
        self.services: set[str] = set()

    def Export(self, request: Any, context: Any) -> Any:  # noqa: ANN401
        del context
        for group in request.resource_spans:
            attributes = {each.key: each.value.string_value for each in group.resource.attributes}
            self.services.add(attributes["service.name"])
            for scope in group.scope_spans:
                for span in scope.spans:
                    self.spans.put(span)
        return trace_service_pb2.ExportTraceServiceResponse()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    taken = Collector()
    server = grpc.server(ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(taken, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    yield taken
    server.stop(None).wait()


def test_a_server_sends_the_stages_of_every_image(
    start: Callable[..., ServerProcess], collector: Collector, images: list[bytes]
) -> None:
    server = start(tracing=True, log_sample=1)
    server.wait_for_line("ready")
    with Client(server.target, timeout=60) as client:
        client.wait_until_ready(60)
    with grpc.insecure_channel(server.target) as channel:
        stub = rpc.RecognitionServiceStub(channel)
        items = [
            api.BatchItem(image=api.Image(content=image), request_id=f"image-{n}") for n, image in enumerate(images[:2])
        ]
        stub.BatchRecognize(api.BatchRecognizeRequest(items=items), timeout=60, metadata=TRACEPARENT)

        def messages() -> Iterator[api.StreamingRecognizeRequest]:
            yield api.StreamingRecognizeRequest(config=api.RecognitionConfig())
            yield api.StreamingRecognizeRequest(item=api.BatchItem(image=api.Image(content=b""), request_id="bad"))
            yield api.StreamingRecognizeRequest(
                item=api.BatchItem(image=api.Image(content=images[0]), request_id="streamed")
            )

        list(stub.StreamingRecognize(messages(), timeout=60, metadata=TRACEPARENT))
    line = server.wait_for_line("call")
    assert line["trace_id"] == TRACE
    assert server.stop() == 0  # which sends what is left
    spans = [collector.spans.get_nowait() for _ in range(collector.spans.qsize())]
    assert collector.services == {"glyphline"}
    assert {span.trace_id.hex() for span in spans} == {TRACE}
    by_id = {span.span_id: span for span in spans}
    calls = {span.name.rpartition("/")[2]: span for span in spans if span.parent_span_id.hex() == PARENT}
    assert set(calls) == {"BatchRecognize", "StreamingRecognize"}
    pictures = {
        attribute.value.string_value: span
        for span in spans
        if span.name == "image"
        for attribute in span.attributes
        if attribute.key == "glyphline.request_id"
    }
    assert set(pictures) == {"image-0", "image-1", "streamed"}  # what was refused at the door had no stages
    for name, picture in pictures.items():
        assert by_id[picture.parent_span_id].name.endswith(
            "StreamingRecognize" if name == "streamed" else "BatchRecognize"
        )
        stages = sorted(
            (span for span in spans if span.parent_span_id == picture.span_id),
            key=lambda span: (span.start_time_unix_nano, span.end_time_unix_nano),
        )
        assert [stage.name for stage in stages] == ["queue", "decode_image", "infer", "search"]
        assert stages[0].start_time_unix_nano == picture.start_time_unix_nano
        assert stages[-1].end_time_unix_nano <= picture.end_time_unix_nano
        assert stages[2].end_time_unix_nano > stages[2].start_time_unix_nano


def test_a_collector_that_is_not_there_harms_nobody(
    start: Callable[..., ServerProcess], images: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    server = start(tracing=True)
    server.wait_for_line("ready")
    with Client(server.target, timeout=60) as client:
        assert client.recognize(images[0]).text
    assert server.stop() == 0
