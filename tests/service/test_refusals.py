"""Every bad request has its documented status, and the server goes on."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import grpc
import numpy as np
import pytest
from google.rpc.status_pb2 import Status
from PIL import Image

from glyphline.models.decoding.options import DecodingOptions
from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
from glyphline.service.client import (
    AsyncClient,
    Client,
    InvalidRequestError,
    NotFoundError,
    RecognitionError,
    Result,
)
from glyphline.service.client.errors import from_call
from glyphline.service.client.requests import channel_options

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess

Code = grpc.StatusCode


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_header(width: int, height: int) -> bytes:
    """A PNG file that claims a size and has next to no pixels."""

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


def png(width: int, height: int) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.full((height, width), 200, np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


BAD_IMAGES = {
    "empty": (b"", "IMAGE_EMPTY"),
    "text": (b"dear server, this is no picture", "IMAGE_UNDECODABLE"),
    "cut": (png(300, 40)[:90], "IMAGE_UNDECODABLE"),
    "huge header": (png_header(60_000, 60_000), "IMAGE_TOO_LARGE"),
    "no width": (png_header(0, 40), "IMAGE_UNDECODABLE"),
    "too many bytes": (png(10, 10) + bytes(21 * 2**20), "IMAGE_TOO_LARGE"),
    "too wide": (png(20_000, 10), "IMAGE_TOO_WIDE"),
}


@pytest.fixture
def stub(server_target: str) -> Iterator[rpc.RecognitionServiceStub]:
    """Calls as they are, for what no client of ours would send."""
    with grpc.insecure_channel(server_target, channel_options(128 * 2**20)) as channel:
        yield rpc.RecognitionServiceStub(channel)


@pytest.fixture(autouse=True)
def goes_on(client: Client, images: list[bytes]) -> Iterator[None]:
    """After each test the server still reads."""
    yield
    assert isinstance(client.recognize(images[0]), Result)


def refuse(call: Callable[..., object], request: object) -> RecognitionError:
    """Makes a call that must fail, and returns the error."""
    with pytest.raises(grpc.RpcError) as failure:
        call(request, timeout=60)
    return from_call(failure.value)


@pytest.mark.parametrize(("content", "reason"), BAD_IMAGES.values(), ids=BAD_IMAGES)
def test_bad_images_are_refused_by_what_is_wrong_with_them(client: Client, content: bytes, reason: str) -> None:
    with pytest.raises(InvalidRequestError) as failure:
        client.recognize(content)
    assert failure.value.reason == reason
    assert [violation.field for violation in failure.value.field_violations] == ["image.content"]
    (outcome,) = client.recognize_many([content])
    assert isinstance(outcome, InvalidRequestError)
    assert outcome.reason == reason


def test_complaint_36_decompression_bombs_are_refused_before_they_are_unpacked(
    server: ServerProcess, client: Client, images: list[bytes]
) -> None:
    """Little files that become much are refused by their headers, each by name, and no worker dies of them."""
    header, rest = images_as_png(images[0])
    zeros = zlib.compress(bytes(60_000 * 1000), 9)
    bombs = {
        "pixels": png_header(60_000, 60_000).replace(chunk(b"IDAT", zlib.compress(b"\0")), chunk(b"IDAT", zeros)),
        "just too many": png(5001, 5000),
        "gif": struct.pack("<6sHHBBB", b"GIF89a", 60_000, 60_000, 0, 0, 0)
        + struct.pack("<sHHHHB", b",", 0, 0, 60_000, 60_000, 0)
        + b"\2\0;",
        "bmp": b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54, 0, 0, 54, 40, 60_000, 60_000, 1, 24, 0, 0, 0, 0, 0, 0),
        "pnm": b"P5 60000 60000 255\n",
    }
    assert max(map(len, bombs.values())) < 100_000
    before = server.metric("glyphline_worker_losses_total")
    outcomes = dict(client.stream([*bombs.items(), ("good", images[0])]))
    assert isinstance(outcomes.pop("good"), Result)
    for name, outcome in outcomes.items():
        assert isinstance(outcome, InvalidRequestError), name
        assert outcome.reason == "IMAGE_TOO_LARGE", name
        assert "25000000" in outcome.message, name
        assert outcome.request_id, name
    # A text beside the pixels that unpacks to much is no reason to fail, and none to unpack it.
    text = header + chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(100 * 2**20), 9)) + rest
    assert client.recognize_many([text])
    assert server.metric("glyphline_worker_losses_total") == before


def test_limits_are_named(client: Client) -> None:
    with pytest.raises(InvalidRequestError, match="25000000"):
        client.recognize(png_header(60_000, 60_000))
    with pytest.raises(InvalidRequestError, match=str(20 * 2**20)):
        client.recognize(bytes(21 * 2**20))


def test_a_request_without_an_image(stub: rpc.RecognitionServiceStub) -> None:
    assert refuse(stub.Recognize, api.RecognizeRequest()).reason == "IMAGE_EMPTY"


def test_complaint_20_messages_above_the_limit(server_target: str, stub: rpc.RecognitionServiceStub) -> None:
    """The limit of a message is an option of both ends, far above gRPC's own, and the error names it."""
    request = api.RecognizeRequest(image=api.Image(content=bytes(65 * 2**20)))
    with pytest.raises(grpc.RpcError) as failure:
        stub.Recognize(request, timeout=60)
    error = from_call(failure.value)
    assert isinstance(error, InvalidRequestError)
    assert "at most 67108864 bytes" in str(error)
    assert not error.retryable
    with Client(server_target) as small:  # which knows better than to send it
        (outcome,) = small.recognize_many([bytes(65 * 2**20)])
        ((_, streamed),) = small.stream([("a", bytes(65 * 2**20))])
        with pytest.raises(InvalidRequestError) as refused:
            small.recognize(bytes(65 * 2**20))
    for each in (outcome, streamed, refused.value):
        assert isinstance(each, InvalidRequestError)
        assert "too large: a message has at most 67108864 bytes" in str(each)


def test_a_batch_beyond_what_the_server_takes_at_once_is_sent_in_parts(client: Client, images: list[bytes]) -> None:
    outcomes = client.recognize_many([images[0]] * 600, batch_size=1000)
    assert len(outcomes) == 600
    assert all(isinstance(outcome, Result) for outcome in outcomes)


async def test_a_batch_of_more_bytes_than_the_server_takes_is_sent_in_parts(server_target: str) -> None:
    async with AsyncClient(server_target, max_message_bytes=128 * 2**20, timeout=60) as client:
        outcomes = await client.recognize_many([bytes(15 * 2**20)] * 6)
    assert [getattr(outcome, "reason", "") for outcome in outcomes] == ["IMAGE_UNDECODABLE"] * 6


@pytest.mark.parametrize(("model", "version"), [("nothing", None), ("", 99), ("digits", 1), ("digits-ctc", 0)])
def test_unknown_models_and_versions(
    shipped_version: int, client: Client, images: list[bytes], model: str, version: int | None
) -> None:
    with pytest.raises(NotFoundError, match=f"it has digits:{shipped_version}, digits-ctc:{shipped_version}"):
        client.recognize(images[0], model=model, version=version)
    with pytest.raises(NotFoundError):
        client.get_model(model, version)
    (outcome,) = client.recognize_many(images[:1], model=model, version=version)
    assert isinstance(outcome, NotFoundError)


@pytest.mark.parametrize("version", ["one", "1.0", "-1", "²", "9" * 400])
def test_versions_that_are_no_numbers(stub: rpc.RecognitionServiceStub, images: list[bytes], version: str) -> None:
    request = api.RecognizeRequest(
        image=api.Image(content=images[0]), config=api.RecognitionConfig(model_version=version)
    )
    assert refuse(stub.Recognize, request).code is Code.NOT_FOUND


CONFIGS = {
    "config.beam_search.beam_width": [
        api.RecognitionConfig(beam_search=api.BeamSearchDecoder(beam_width=width)) for width in (-1, 101, 2**31 - 1)
    ],
    "config.beam_search.length_penalty": [
        api.RecognitionConfig(beam_search=api.BeamSearchDecoder(length_penalty=penalty))
        for penalty in (-0.5, 11.0, float("nan"))
    ],
    "config.max_alternatives": [
        api.RecognitionConfig(max_alternatives=-1),
        api.RecognitionConfig(max_alternatives=1000),
        api.RecognitionConfig(max_alternatives=6, beam_search=api.BeamSearchDecoder(beam_width=5)),
    ],
    "config.max_output_length": [api.RecognitionConfig(max_output_length=-1)],
    "config.allowed_characters": [
        api.RecognitionConfig(allowed_characters=""),
        api.RecognitionConfig(allowed_characters="€"),
        api.RecognitionConfig(allowed_characters="1" * 5000),
    ],
    "config.priority": [api.RecognitionConfig(priority=77)],  # type: ignore[arg-type]
}


@pytest.mark.parametrize(
    ("field", "config"), [(field, config) for field, configs in CONFIGS.items() for config in configs]
)
def test_options_out_of_range(
    stub: rpc.RecognitionServiceStub, images: list[bytes], field: str, config: api.RecognitionConfig
) -> None:
    image = api.Image(content=images[0])
    for call, request in (
        (stub.Recognize, api.RecognizeRequest(image=image, config=config)),
        (stub.BatchRecognize, api.BatchRecognizeRequest(items=[api.BatchItem(image=image)], config=config)),
    ):
        error = refuse(call, request)
        assert error.code is Code.INVALID_ARGUMENT
        assert [violation.field for violation in error.field_violations] == [field]
    messages = iter([api.StreamingRecognizeRequest(config=config)])
    with pytest.raises(grpc.RpcError) as failure:
        list(stub.StreamingRecognize(messages, timeout=60))
    assert from_call(failure.value).field_violations[0].field == field


def test_an_items_own_configuration_fails_alone(stub: rpc.RecognitionServiceStub, images: list[bytes]) -> None:
    image = api.Image(content=images[0])
    response = stub.BatchRecognize(
        api.BatchRecognizeRequest(
            items=[
                api.BatchItem(id="good", image=image),
                api.BatchItem(id="model", image=image, config=api.RecognitionConfig(model="nothing")),
                api.BatchItem(id="length", image=image, config=api.RecognitionConfig(max_output_length=-1)),
                api.BatchItem(id="name", image=image, request_id="x" * 129),
                api.BatchItem(id="truth", image=image, reference_text="1" * 5000),
                api.BatchItem(id="beam", image=image, config=api.RecognitionConfig(beam_search={"beam_width": 2})),
            ]
        ),
        timeout=60,
    )
    assert [result.id for result in response.results] == ["good", "model", "length", "name", "truth", "beam"]
    codes = [result.error.code if result.HasField("error") else 0 for result in response.results]
    invalid = Code.INVALID_ARGUMENT.value[0]
    assert codes == [0, Code.NOT_FOUND.value[0], invalid, invalid, invalid, 0]
    assert isinstance(response.results[1].error, Status)


@pytest.mark.parametrize(
    "path",
    [
        "/glyphline.recognition.v1.RecognitionService/Recognize",
        "/glyphline.recognition.v1.RecognitionService/BatchRecognize",
        "/glyphline.recognition.v1.ModelService/GetModel",
        "/glyphline.recognition.v1.FeedbackService/SubmitReference",
        "/grpc.health.v1.Health/Check",
    ],
)
def test_bytes_that_are_no_message(server_target: str, path: str) -> None:
    with grpc.insecure_channel(server_target) as channel:
        error = refuse(channel.unary_unary(path), b"\xff\xff\xff")
    assert (error.code, error.reason) == (Code.INVALID_ARGUMENT, "REQUEST_INVALID")
    assert path.rpartition("/")[2] in str(error)


@pytest.mark.parametrize(
    "path",
    [
        "/glyphline.recognition.v1.RecognitionService/StreamingRecognize",
        "/grpc.health.v1.Health/Watch",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    ],
)
def test_bytes_that_are_no_message_of_a_stream(server_target: str, path: str) -> None:
    with grpc.insecure_channel(server_target) as channel, pytest.raises(grpc.RpcError) as failure:
        list(channel.stream_stream(path)(iter([b"\xff\xff\xff"]), timeout=60))  # type: ignore[arg-type]
    assert from_call(failure.value).code is Code.INVALID_ARGUMENT


def test_the_bounds_of_the_beam_are_told_alike(stub: rpc.RecognitionServiceStub, images: list[bytes]) -> None:
    for width in (-2, 101):
        config = api.RecognitionConfig(beam_search=api.BeamSearchDecoder(beam_width=width))
        error = refuse(stub.Recognize, api.RecognizeRequest(image=api.Image(content=images[0]), config=config))
        assert error.message == f"beam_width: must be from 1 to 100, not {width}"


def test_too_many_items(stub: rpc.RecognitionServiceStub) -> None:
    error = refuse(stub.BatchRecognize, api.BatchRecognizeRequest(items=[api.BatchItem()] * 257))
    assert (error.code, error.field_violations[0].field) == (Code.INVALID_ARGUMENT, "items")
    assert "256" in str(error)


@pytest.mark.parametrize(
    "first", [api.StreamingRecognizeRequest(item=api.BatchItem()), api.StreamingRecognizeRequest()]
)
def test_a_stream_begins_with_a_configuration(
    stub: rpc.RecognitionServiceStub, first: api.StreamingRecognizeRequest
) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        list(stub.StreamingRecognize(iter([first]), timeout=60))
    error = from_call(failure.value)
    assert (error.code, error.field_violations[0].field) == (Code.INVALID_ARGUMENT, "request")


def test_a_stream_may_change_its_configuration(stub: rpc.RecognitionServiceStub, images: list[bytes]) -> None:
    def messages() -> Iterator[api.StreamingRecognizeRequest]:
        for length in (1, 2):
            config = api.RecognitionConfig(max_output_length=length, greedy=api.GreedyDecoder())
            yield api.StreamingRecognizeRequest(config=config)
            item = api.BatchItem(id=str(length), image=api.Image(content=images[0]))
            yield api.StreamingRecognizeRequest(item=item)

    texts = {
        response.result.id: response.result.response.alternatives[0].text
        for response in stub.StreamingRecognize(messages(), timeout=60)
    }
    assert {name: len(text) for name, text in texts.items()} == {"1": 1, "2": 2}


def test_long_names_and_texts(client: Client, images: list[bytes]) -> None:
    with pytest.raises(InvalidRequestError, match="request_id"):
        client.recognize(images[0], request_id="x" * 129)
    with pytest.raises(InvalidRequestError, match="reference_text"):
        client.recognize(images[0], reference="1" * 4097)
    assert client.recognize(images[0], request_id="x" * 128, reference="1" * 4096).metadata.request_id == "x" * 128


def test_the_model_fills_in_what_a_beam_leaves_open(stub: rpc.RecognitionServiceStub, images: list[bytes]) -> None:
    config = api.RecognitionConfig(beam_search=api.BeamSearchDecoder(), max_alternatives=10)
    response = stub.Recognize(api.RecognizeRequest(image=api.Image(content=images[0]), config=config), timeout=60)
    assert 1 < len(response.alternatives) <= 10


def test_the_client_refuses_bad_options_by_itself(client: Client, images: list[bytes]) -> None:
    with pytest.raises(InvalidRequestError, match="from 1 to 100"):
        client.recognize(images[0], options=DecodingOptions("beam", beam_width=101))


def test_a_long_header_holds_up_nobody(server: ServerProcess, client: Client, images: list[bytes]) -> None:
    """A hundred thousand text chunks before the pixels: read in a thread, and as good an image as any."""
    head, data = images_as_png(images[0])
    chunk = struct.pack(">I", 3) + b"tEXt" + b"a\0b" + struct.pack(">I", zlib.crc32(b"tEXta\0b"))
    (outcome,) = client.recognize_many([head + chunk * 100_000 + data])
    assert isinstance(outcome, Result)
    assert outcome.text == client.recognize(head + data).text
    assert not [line for line in server.raw if "Warning" in line]


def images_as_png(content: bytes) -> tuple[bytes, bytes]:
    """Rewrites an image as a PNG, in two parts: up to the end of its header, and from there."""
    buffer = io.BytesIO()
    Image.open(io.BytesIO(content)).convert("L").save(buffer, "PNG")
    end = 8 + 4 + 4 + 13 + 4  # signature; length, kind, data and checksum of IHDR
    return buffer.getvalue()[:end], buffer.getvalue()[end:]
