"""What a caller is told besides the answer: the request id, whatever becomes of the call, and never more than fits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
from glyphline.service import boundary
from glyphline.service.boundary import REQUEST_ID_KEY, Context, guard, log_failure
from glyphline.service.client import Client, DeadlineExceededError, RetryPolicy
from glyphline.service.errors import DeadlineError, QueueFullError, RequestError
from glyphline.service.logs import Throttle
from glyphline.service.parsing import ParsingInterceptor
from glyphline.service.status import DETAILS_KEY

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess

T = TypeVar("T")

WORDS = ["x" * 129, "x" * 100_000, "é" * 5000, "💡" * 5000, "\0" * 3000, " ", "%20", "a\nb", "\x7f"]


@pytest.fixture
def channel(server_target: str) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server_target) as opened:
        yield opened


def outcome(
    call: Any,  # noqa: ANN401  # calls of several methods, whose messages have no type in common
    request: object,
    metadata: tuple[tuple[str, str], ...] = (),
) -> tuple[grpc.StatusCode, dict[str, str | bytes]]:
    """Makes a call and returns its status and trailing metadata."""
    try:
        _, done = call.with_call(request, timeout=60, metadata=metadata)
    except grpc.RpcError as error:
        assert isinstance(error, grpc.Call)
        done = error
    return done.code(), dict(done.trailing_metadata() or ())


@pytest.mark.parametrize("name", ["order-7", "größe 7", " 7 ", "100%"])
def test_the_request_id_comes_back_with_the_answer(channel: grpc.Channel, images: list[bytes], name: str) -> None:
    call = rpc.RecognitionServiceStub(channel).Recognize
    for content, expected in ((images[0], grpc.StatusCode.OK), (b"", grpc.StatusCode.INVALID_ARGUMENT)):
        code, trailers = outcome(call, api.RecognizeRequest(image=api.Image(content=content), request_id=name))
        assert code is expected
        assert unquote(str(trailers[REQUEST_ID_KEY])) == name


def test_a_proxys_request_id_stands_for_one_of_the_callers(channel: grpc.Channel, images: list[bytes]) -> None:
    stub = rpc.RecognitionServiceStub(channel)
    metadata = ((REQUEST_ID_KEY, "from-proxy"),)
    image = api.Image(content=images[0])
    response, call = stub.Recognize.with_call(api.RecognizeRequest(image=image), timeout=60, metadata=metadata)
    assert response.metadata.request_id == "from-proxy"
    assert dict(call.trailing_metadata() or ())[REQUEST_ID_KEY] == "from-proxy"
    response = stub.Recognize(api.RecognizeRequest(image=image, request_id="own"), timeout=60, metadata=metadata)
    assert response.metadata.request_id == "own"
    response = stub.Recognize(api.RecognizeRequest(image=image), timeout=60, metadata=((REQUEST_ID_KEY, "x" * 129),))
    assert len(response.metadata.request_id) == 36
    # A batch that fails as a whole has an id, too, by which the log knows it.
    request = api.BatchRecognizeRequest(config=api.RecognitionConfig(model="none"))
    code, trailers = outcome(stub.BatchRecognize, request, metadata)
    assert (code, trailers[REQUEST_ID_KEY]) == (grpc.StatusCode.NOT_FOUND, "from-proxy")
    status = Status.FromString(bytes(trailers[DETAILS_KEY]))  # type: ignore[arg-type]
    info = ErrorInfo()
    assert any(detail.Unpack(info) for detail in status.details)
    assert info.metadata["request_id"] == "from-proxy"


@pytest.mark.parametrize("word", WORDS, ids=range(len(WORDS)))
def test_no_word_of_a_caller_makes_an_answer_that_does_not_fit(
    channel: grpc.Channel, images: list[bytes], word: str
) -> None:
    """Statuses travel in headers. One that is too long for them would reach the caller as some other failure."""
    image = api.Image(content=images[0])
    recognition, models = rpc.RecognitionServiceStub(channel), rpc.ModelServiceStub(channel)
    feedback = rpc.FeedbackServiceStub(channel)
    missing, invalid = grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT
    longest = "ü" * 128
    for call, request, expected in (
        (
            recognition.Recognize,
            api.RecognizeRequest(image=image, config={"model": word}, request_id=longest),
            {missing},
        ),
        (
            recognition.Recognize,
            api.RecognizeRequest(image=image, config={"model_version": word}, request_id=longest),
            {missing},
        ),
        (
            recognition.Recognize,
            api.RecognizeRequest(image=image, config={"lexicon": {"name": word}}, request_id=longest),
            {missing},
        ),
        (
            recognition.Recognize,
            api.RecognizeRequest(image=image, config={"language_model": {"name": word}}, request_id=longest),
            {missing},
        ),
        (
            recognition.Recognize,
            api.RecognizeRequest(image=image, config={"allowed_characters": word.replace("0", "")[:4000]}),
            {invalid, grpc.StatusCode.OK},
        ),
        (recognition.Recognize, api.RecognizeRequest(request_id=word), {invalid}),
        (models.GetModel, api.GetModelRequest(name=word), {missing}),
        (models.ListModels, api.ListModelsRequest(page_token=word), {invalid}),
        (feedback.SubmitReference, api.SubmitReferenceRequest(request_id=word), {missing}),
    ):
        code, trailers = outcome(call, request)
        assert code in expected, (type(request), code)
        size = sum(len(key) + len(value) for key, value in trailers.items())
        assert size < 6000


class LateServicer(rpc.RecognitionServiceServicer):
    """Goes on with a call after its caller has left: then it refuses it, or writes an answer."""

    def __init__(self) -> None:
        self.begun, self.endings = asyncio.Event(), asyncio.Queue[object]()

    async def Recognize(self, request: api.RecognizeRequest, context: Context) -> api.RecognizeResponse:
        return await self._observe(guard(context, "Recognize", "7", self._refuse()))

    async def BatchRecognize(self, request: api.BatchRecognizeRequest, context: Context) -> api.BatchRecognizeResponse:
        raise NotImplementedError

    async def StreamingRecognize(  # type: ignore[override]
        self, request_iterator: AsyncIterator[api.StreamingRecognizeRequest], context: Context
    ) -> None:
        await self._observe(guard(context, "StreamingRecognize", "7", self._write(context)))

    async def _observe(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except BaseException as error:
            self.endings.put_nowait(type(error))
            raise

    async def _until_nobody_is_there(self) -> None:
        self.begun.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    async def _refuse(self) -> api.RecognizeResponse:
        await self._until_nobody_is_there()
        raise DeadlineError("too late")

    async def _write(self, context: Context) -> None:
        await self._until_nobody_is_there()
        await context.write(api.StreamingRecognizeResponse())


@pytest.mark.parametrize(("method", "codes"), [("Recognize", ["DEADLINE_EXCEEDED"]), ("StreamingRecognize", [])])
async def test_a_caller_who_has_left_is_no_fault_of_the_server(
    caplog: pytest.LogCaptureFixture, method: str, codes: list[str]
) -> None:
    """What cannot be told to anybody ends like a call that was cancelled; a refusal has its one line, and no more."""
    caplog.set_level(logging.INFO)
    servicer = LateServicer()
    server = grpc.aio.server(interceptors=[ParsingInterceptor()])
    rpc.add_RecognitionServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub: Any = rpc.RecognitionServiceStub(channel)
        call = stub.Recognize(api.RecognizeRequest()) if method == "Recognize" else stub.StreamingRecognize()
        await asyncio.wait_for(servicer.begun.wait(), 60)
        call.cancel()
        assert await asyncio.wait_for(servicer.endings.get(), 60) is asyncio.CancelledError
    await server.stop(None)
    lines = [record for record in caplog.records if record.name.startswith(("glyphline", "grpc"))]
    assert [vars(line)["code"] for line in lines] == codes
    assert all(line.levelno == logging.INFO and line.exc_info is None for line in lines)


def test_deadlines_that_pass_at_every_moment_leave_no_error_in_the_log(
    server: ServerProcess, images: list[bytes], until: Callable[[Callable[[], bool], str], None]
) -> None:
    with Client(server.target, timeout=60, retry=RetryPolicy(attempts=1)) as client:
        client.recognize(images[0])
        for step in range(150):
            with suppress(DeadlineExceededError):
                client.recognize(images[0], timeout=0.0005 + 0.00004 * step)
        client.recognize(images[0])
    calls = ("grpc_server_started_total", "grpc_server_handled_total")
    until(lambda: len({server.metric(name) for name in calls}) == 1, "every call has ended")
    assert not [line for line in server.lines if line["level"] == "error"]


def test_of_a_crowd_of_refusals_few_are_written(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server with too much to do must not be kept from it by its log; what callers do wrong is written each time."""
    caplog.set_level(logging.INFO)
    moments = iter([5.0] * 15 + [6.5])
    crowd = Throttle(10, lambda: next(moments))
    monkeypatch.setitem(boundary._CROWDS, grpc.StatusCode.RESOURCE_EXHAUSTED, crowd)
    for number in range(16):
        log_failure(QueueFullError("full"), "Recognize", str(number))
        log_failure(RequestError("items", "too many"), "Recognize", "wrong")
    full = [vars(line) for line in caplog.records if vars(line)["request_id"] != "wrong"]
    assert [line["request_id"] for line in full] == [*map(str, range(10)), "15"]
    assert [line.get("left_out") for line in full] == [None] * 10 + [5]
    assert len(caplog.records) == 16 + 11
