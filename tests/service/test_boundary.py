"""What a caller is told besides the answer: the request id, whatever becomes of the call, and never more than fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
from glyphline.service.boundary import REQUEST_ID_KEY
from glyphline.service.status import DETAILS_KEY

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
