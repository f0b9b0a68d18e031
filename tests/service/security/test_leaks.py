"""Whatever is sent, no answer tells of the server's inside, and nothing is opened on behalf of a caller."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from google.rpc.status_pb2 import Status
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc

PATHS = [
    "/glyphline.recognition.v1.RecognitionService/Recognize",
    "/glyphline.recognition.v1.RecognitionService/BatchRecognize",
    "/glyphline.recognition.v1.ModelService/ListModels",
    "/glyphline.recognition.v1.ModelService/GetModel",
    "/glyphline.recognition.v1.FeedbackService/SubmitReference",
    "/grpc.health.v1.Health/Check",
]
STREAMS = [
    "/glyphline.recognition.v1.RecognitionService/StreamingRecognize",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
]
INSIDE = re.compile(
    "|".join(
        [
            *map(
                re.escape,
                (str(Path.home()), sys.prefix, "/usr/", "/etc/", "/tmp/", "Traceback", 'File "', "<class", "<_io"),
            ),
            r"\.py\b|line \d+|0x[0-9a-f]{6}|BytesIO|onnx|PIL|numpy|Errno|Exception|Error:",
        ]
    )
)
quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def channel(server_target: str) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server_target) as opened:
        yield opened


def told(error: grpc.RpcError) -> str:
    """Returns all that a caller is told of a failure."""
    assert isinstance(error, grpc.Call)
    assert error.code() is not grpc.StatusCode.UNKNOWN, error.details()
    assert error.code() is not grpc.StatusCode.INTERNAL, error.details()
    return f"{error.details()} {error.trailing_metadata()}"


def names(count: int = 40) -> st.SearchStrategy[str]:
    # Unlike anything of the inside, since a caller's own words come back to him.
    hostile = [
        "../../../srv/secret",
        "/srv/secret",
        "file:///srv/secret",
        "http://127.0.0.1:1/",
        "%s%n",
        "${HOME}",
        "\0",
    ]
    return st.sampled_from(hostile) | st.text(max_size=count)


IMAGES = st.builds(
    api.Image,
    content=st.binary(max_size=200)
    | st.sampled_from(
        [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"II*\0", b"BM", b"P5\n9 9\n255\n", b"RIFF"]
    ).flatmap(lambda head: st.binary(max_size=300).map(lambda rest: head + rest)),
)
CONFIGS = st.builds(
    api.RecognitionConfig,
    model=names(),
    model_version=names(5),
    max_alternatives=st.integers(-(2**31), 2**31 - 1),
    max_output_length=st.integers(-5, 2**31 - 1),
    allowed_characters=names(),
    language_model=st.none() | st.builds(api.LanguageModel, name=names(), weight=st.floats(width=32)),
    length_bonus=st.floats(width=32),
)
REQUESTS = st.builds(
    api.RecognizeRequest,
    image=IMAGES,
    config=st.none() | CONFIGS | st.builds(api.RecognitionConfig),
    reference_text=st.none() | names(),
    request_id=names(200),
)


@quick
@given(st.sampled_from(PATHS), st.binary(max_size=200))
def test_random_bytes_to_any_method(channel: grpc.Channel, path: str, content: bytes) -> None:
    try:
        channel.unary_unary(path)(content, timeout=60)  # type: ignore[arg-type]
    except grpc.RpcError as error:
        assert not INSIDE.search(told(error)), told(error)


@quick
@given(st.sampled_from(STREAMS), st.lists(st.binary(max_size=100), max_size=4))
def test_random_bytes_to_any_stream(channel: grpc.Channel, path: str, contents: list[bytes]) -> None:
    try:
        list(channel.stream_stream(path)(iter(contents), timeout=60))  # type: ignore[arg-type]
    except grpc.RpcError as error:
        assert not INSIDE.search(told(error)), told(error)


@quick
@given(REQUESTS)
def test_random_requests(channel: grpc.Channel, request_: api.RecognizeRequest) -> None:
    try:
        rpc.RecognitionServiceStub(channel).Recognize(request_, timeout=60)
    except grpc.RpcError as error:
        message = told(error)
        assert isinstance(error, grpc.Call)
        assert Status.FromString(bytes(dict(error.trailing_metadata() or ())["grpc-status-details-bin"])).message
        assert not INSIDE.search(message), message


HOSTILE = """
import io, sys
from glyphline.models.errors import ImageError
from glyphline.models.image import ImageLimits, read_header, read_image

FILES = [
    b"/etc/passwd", b"file:///etc/passwd", b"http://127.0.0.1:1/a.png", b"\\\\\\\\host\\\\share\\\\a.png",
    b"%!PS-Adobe-3.0 EPSF-3.0\\n%%BoundingBox: 0 0 9 9\\n(/etc/passwd) run\\n%%EOF\\n",
    b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
    b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
    b"%PDF-1.4\\n1 0 obj<</Type/Catalog>>endobj\\n%%EOF", b"#FIG 3.2\\n", b"PK\\x03\\x04rest",
    b"push graphic-context\\nimage over 0,0 0,0 'https://127.0.0.1:1/'\\npop graphic-context",
]

def look(content):
    for read in (read_header, read_image):
        try:
            read(content, ImageLimits())
        except ImageError:
            pass
        else:
            raise SystemExit(f"{content!r} is an image")

for content in FILES:
    look(content)  # all modules are loaded now
seen = []
sys.addaudithook(lambda event, arguments: seen.append((event, arguments)) if watching else None)
watching = True
for content in FILES:
    look(content)
watching = False
bad = [each for each in seen if each[0].startswith(("open", "socket.", "subprocess.", "os.", "ctypes.", "import"))]
print(bad)
raise SystemExit(bool(bad))
"""


def test_no_file_and_no_address_is_opened_for_an_image() -> None:
    """What names a file, an address or a program is no image, and stays a mere row of bytes."""
    done = subprocess.run([sys.executable, "-c", HOSTILE], capture_output=True, text=True, check=False, env=os.environ)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_names_never_become_paths(channel: grpc.Channel, images: list[bytes]) -> None:
    """Models, lexicons and language models are looked up among those that were loaded, and nowhere else."""
    stub = rpc.RecognitionServiceStub(channel)
    image = api.Image(content=images[0])
    for name in ("/etc/passwd", "../digits", "digits/../../etc", "file:///etc/passwd"):
        for config in (
            api.RecognitionConfig(model=name),
            api.RecognitionConfig(lexicon=api.Lexicon(name=name)),
            api.RecognitionConfig(language_model=api.LanguageModel(name=name)),
        ):
            with pytest.raises(grpc.RpcError) as failure:
                stub.Recognize(api.RecognizeRequest(image=image, config=config), timeout=60)
            assert isinstance(failure.value, grpc.Call)
            assert failure.value.code() is grpc.StatusCode.NOT_FOUND
