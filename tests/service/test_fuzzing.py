"""Damaged requests and damaged images: whatever is sent, the answer is one that the API documents, and the server is
the same afterwards. `tests/fuzz/` searches further, and for longer."""

from __future__ import annotations

import io
import os
import socket
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from glyphline.models.errors import ImageError, ImageTooWideError
from glyphline.models.image import FORMATS, ImageLimits, ImageSettings, normalise, read_header, read_image
from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.service.client import Client

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:PIL", "ignore:.*:UserWarning")
Code = grpc.StatusCode
DOCUMENTED = {Code.OK, Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.ALREADY_EXISTS}
ITEM_CODES = {code.value[0] for code in DOCUMENTED}
SMALL = ImageLimits(max_pixels=1_000_000)
few, some, many = (settings(max_examples=count, deadline=None) for count in (10, 40, 150))

# Files of every format

STRIPS = sorted((Path(__file__).parents[1] / "data" / "strips").glob("*.png"))[:2]


def saved(image: Image.Image, file_format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, file_format, **options)
    return buffer.getvalue()


def files() -> Iterator[tuple[str, bytes]]:
    for path in STRIPS:
        with Image.open(path) as image:
            grey = image.convert("L")
        grey.thumbnail((120, 24))
        for file_format in FORMATS:
            yield file_format, saved(grey, file_format)
        yield "JPEG", saved(grey.convert("RGB"), "JPEG", progressive=True)
        for compression in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"):
            yield "TIFF", saved(grey, "TIFF", compression=compression)
        yield "TIFF", saved(grey.convert("1"), "TIFF", compression="group4")
        yield "PNG", saved(grey.convert("P"), "PNG", transparency=0)
        yield "GIF", saved(grey, "GIF", save_all=True, append_images=[grey.rotate(180)])
        yield "WEBP", saved(grey.convert("RGBA"), "WEBP", lossless=True)


FILES = list(files())


def claim(file_format: str, content: bytes, width: int, height: int) -> bytes:
    """Has a file claim another size, with all checksums right."""
    changed = bytearray(content)
    match file_format:
        case "PNG":
            changed[16:24] = struct.pack(">II", width, height)
            changed[29:33] = struct.pack(">I", zlib.crc32(changed[12:29]))
        case "JPEG":
            at = max(content.find(b"\xff\xc0"), content.find(b"\xff\xc2")) + 5
            changed[at : at + 4] = struct.pack(">HH", height & 0xFFFF, width & 0xFFFF)
        case "GIF":
            changed[6:10] = struct.pack("<HH", width & 0xFFFF, height & 0xFFFF)
        case "BMP":
            changed[18:26] = struct.pack("<II", width, height)
        case "PPM":
            return b"P5 %d %d 255\n" % (width, height) + content[-2000:]
        case "TIFF":
            at = struct.unpack_from("<I", content, 4)[0]
            for entry in range(at + 2, at + 2 + 12 * struct.unpack_from("<H", content, at)[0], 12):
                tag = struct.unpack_from("<H", content, entry)[0]
                if tag in (256, 257):
                    struct.pack_into("<HII", changed, entry + 2, 4, 1, width if tag == 256 else height)
        case "WEBP":
            struct.pack_into("<I", changed, 21, (width & 0x3FFF) | (height & 0x3FFF) << 14)
    return bytes(changed)


SIZES = st.sampled_from([0, 1, 2, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1]) | st.integers(0, 5000)
NUMBERS = [struct.pack(form, number) for number in (0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 60000) for form in ("<I", ">I")]


@st.composite
def damaged(draw: st.DrawFn, contents: list[bytes], *, most: int = 3) -> bytes:
    """Bytes that were right once: cut, with bytes turned, put in, left out, or repeated, or the head of another."""
    content = bytearray(draw(st.sampled_from(contents)))
    for _ in range(draw(st.integers(1, most))):
        size = len(content)
        # Near the beginning there is more to break.
        at = draw(st.integers(0, min(size, 60)) | st.integers(0, size))
        match draw(st.sampled_from(["cut", "turn", "number", "put", "leave out", "repeat", "head"])):
            case "cut":
                del content[at:]
            case "turn" if at < size:
                content[at] ^= draw(st.integers(1, 255))
            case "number":
                content[at : at + 4] = draw(st.sampled_from(NUMBERS))
            case "put":
                content[at:at] = draw(st.binary(max_size=20))
            case "leave out":
                del content[at : at + draw(st.integers(1, 50))]
            case "repeat":
                content[at:at] = content[at : at + draw(st.integers(1, 50))] * draw(st.integers(1, 20))
            case "head":
                length = draw(st.integers(1, 64))
                content[:length] = draw(st.sampled_from(contents))[:length]
    return bytes(content)


CLAIMS = st.tuples(st.sampled_from(FILES), SIZES, SIZES).map(lambda drawn: claim(*drawn[0], *drawn[1:]))
IMAGES = damaged([content for _, content in FILES]) | CLAIMS | st.binary(max_size=64)


@many
@given(IMAGES)
def test_damaged_images_are_read_or_refused(content: bytes) -> None:
    """Nothing but an ImageError is raised, and what a header promises is what is read."""
    try:
        header = read_header(content, SMALL)
    except ImageError as refusal:
        with pytest.raises(type(refusal)):
            read_image(content, SMALL)
        return
    try:
        image = read_image(content, SMALL)
    except ImageError:
        return
    assert (image.width, image.height) == (header.width, header.height)
    try:
        normalise(image, ImageSettings())
    except ImageTooWideError:
        return


# Through a real server


@pytest.fixture(scope="module")
def channel(server: ServerProcess) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.target) as opened:
        yield opened


@pytest.fixture(scope="module", autouse=True)
def unharmed(server: ServerProcess, images: list[bytes]) -> Iterator[None]:
    """After all of it the same workers read the same texts, and the log has no fault and nothing that is no line."""

    def read() -> list[str]:
        with Client(server.target, timeout=60) as client:
            return [client.recognize(content).text for content in images[:4]]

    before, losses = read(), server.metric("glyphline_worker_losses_total")
    yield
    assert read() == before
    assert server.metric("glyphline_worker_losses_total") == losses
    for pid in server.worker_pids:
        os.kill(pid, 0)
    assert server.metric("grpc_server_handled_total", grpc_code="INTERNAL") == 0
    assert server.metric("grpc_server_handled_total", grpc_code="UNKNOWN") == 0
    assert [line for line in server.lines if line["level"] in ("warning", "error")] == []
    assert [text for text in server.raw if not text.startswith("{")] == []


def strip() -> bytes:
    return FILES[0][1]


CONFIGS = [
    api.RecognitionConfig(model="digits", greedy=api.GreedyDecoder(), allowed_characters="0123"),
    api.RecognitionConfig(
        model="digits-ctc",
        beam_search=api.BeamSearchDecoder(beam_width=3, length_penalty=0.5),
        max_alternatives=3,
        enable_token_details=True,
        priority=api.PRIORITY_HIGH,
    ),
    api.RecognitionConfig(lexicon=api.Lexicon(words=["7", "12"], several_words=False), length_bonus=0.5),
    api.RecognitionConfig(lexicon=api.Lexicon(name="codes"), language_model=api.LanguageModel(name="one", weight=0.5)),
]
ITEMS = [api.BatchItem(id=str(at), image=api.Image(content=strip()), config=each) for at, each in enumerate(CONFIGS)]
REQUESTS: dict[str, list[Message]] = {
    "Recognize": [
        api.RecognizeRequest(image=item.image, config=item.config, reference_text="17", request_id="a")
        for item in ITEMS
    ],
    "BatchRecognize": [api.BatchRecognizeRequest(items=ITEMS, config=CONFIGS[0])],
    "StreamingRecognize": [
        api.StreamingRecognizeRequest(config=CONFIGS[0]),
        *(api.StreamingRecognizeRequest(item=item) for item in ITEMS),
    ],
    "ListModels": [api.ListModelsRequest(page_size=1, page_token="MQ==")],
    "GetModel": [api.GetModelRequest(name="digits", version="1")],
    "SubmitReference": [api.SubmitReferenceRequest(request_id="a", reference_text="17")],
    "Check": [health_pb2.HealthCheckRequest(service="digits")],
    "ServerReflectionInfo": [
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="grpc.health.v1.Health", host="a"),
        reflection_pb2.ServerReflectionRequest(list_services="*"),
    ],
}
SERVICES: list[Any] = [
    service for module in (api, health_pb2, reflection_pb2) for service in module.DESCRIPTOR.services_by_name.values()
]
METHODS = {
    f"/{method.containing_service.full_name}/{method.name}": [
        each.SerializeToString() for each in REQUESTS[method.name]
    ]
    for service in SERVICES
    for method in service.methods
    if method.name in REQUESTS
}
STREAMS = {path for path in METHODS if path.endswith(("StreamingRecognize", "ServerReflectionInfo"))}


def test_every_method_is_among_those_that_are_tried() -> None:
    names = {method.name for service in SERVICES for method in service.methods}
    assert names - set(REQUESTS) <= {"Watch", "List"}  # of health; a Watch does not end


def ended(call: Callable[[], object]) -> None:
    """Makes a call, which must end as the API documents: also with what tells the reason, where it fails."""
    try:
        call()
    except grpc.RpcError as error:
        assert isinstance(error, grpc.Call)
        assert error.code() in DOCUMENTED, (error.code(), error.details())
        trailers = dict(error.trailing_metadata() or ())
        if details := trailers.get("grpc-status-details-bin"):
            assert isinstance(details, bytes)
            assert Status.FromString(details).code == error.code().value[0]


@some
@given(data=st.data(), path=st.sampled_from(sorted(METHODS.keys() - STREAMS)))
def test_damaged_requests_are_answered_or_refused(channel: grpc.Channel, data: st.DataObject, path: str) -> None:
    content = data.draw(damaged(METHODS[path]) | damaged(list(METHODS[path]), most=1) | st.binary(max_size=200))
    ended(lambda: channel.unary_unary(path)(content, timeout=60))  # type: ignore[arg-type]


@few
@given(data=st.data(), path=st.sampled_from(sorted(STREAMS)))
def test_damaged_streams_are_answered_or_refused(channel: grpc.Channel, data: st.DataObject, path: str) -> None:
    whole = METHODS[path]
    contents = data.draw(st.lists(st.sampled_from(whole) | damaged(whole, most=1), max_size=5))
    opening = data.draw(st.sampled_from([whole[:1], []]))
    ended(lambda: list(channel.stream_stream(path)(iter([*opening, *contents]), timeout=60)))  # type: ignore[arg-type]


@few
@given(st.lists(IMAGES, min_size=3, max_size=8), st.integers(0, 3))
def test_damaged_images_have_one_result_each_and_harm_no_neighbour(
    channel: grpc.Channel, images: list[bytes], contents: list[bytes], place: int
) -> None:
    """A good image among damaged ones reads as it does alone."""
    contents.insert(place, images[0])
    items = [api.BatchItem(id=str(at), image=api.Image(content=content)) for at, content in enumerate(contents)]
    results = batch(channel, items)
    assert [each.id for each in results] == [item.id for item in items]
    (alone,) = batch(channel, items[place : place + 1])
    assert results[place].response.alternatives[0].text == alone.response.alternatives[0].text
    for each in results:
        assert each.WhichOneof("result") == "response" or each.error.code in ITEM_CODES, each


def batch(channel: grpc.Channel, items: Iterable[api.BatchItem]) -> list[api.BatchItemResult]:
    call = channel.unary_unary(
        "/glyphline.recognition.v1.RecognitionService/BatchRecognize",
        api.BatchRecognizeRequest.SerializeToString,
        api.BatchRecognizeResponse.FromString,
    )
    return list(call(api.BatchRecognizeRequest(items=items), timeout=60).results)


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
FRAMES = st.builds(
    lambda kind, flags, stream, body: len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream + body,
    st.integers(0, 12),
    st.integers(0, 255),
    st.sampled_from([bytes(4), b"\0\0\0\1", b"\0\0\0\2", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"]),
    st.binary(max_size=40),
)


@few
@given(st.sampled_from([b"", PREFACE[:10], PREFACE]), st.lists(FRAMES, max_size=4), st.binary(max_size=40))
def test_what_is_no_http2_ends_its_own_connection_and_no_other(
    server: ServerProcess, channel: grpc.Channel, opening: bytes, frames: list[bytes], rest: bytes
) -> None:
    host, _, port = server.target.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(opening + b"".join(frames) + rest)
    stub: Any = health_pb2_grpc.HealthStub(channel)
    answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=60)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
