"""Requests are taken apart as they are meant, or refused by the field that is wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from glyphline.open_inference.v2 import open_inference_pb2 as api
from glyphline.service.admission import ReadConfig, ReadRequest
from glyphline.service.errors import RequestError
from glyphline.service.open_inference.interface import ALTERNATIVES, CONFIDENCE, ERROR, STATUS, TEXT
from glyphline.service.open_inference.requests import read_message, request_ids, requests_of
from glyphline.service.open_inference.tensors import pack_bytes

Request = api.ModelInferRequest
Tensor = Request.InferInputTensor
IMAGES = [b"first", b"", b"third"]
MOST = 4


def raw_request(images: list[bytes] = IMAGES, references: list[bytes] | None = None) -> Request:
    """A request as tritonclient writes it."""
    request = Request(model_name="digits")
    for name, elements in (("image", images), ("reference_text", references)):
        if elements is not None:
            request.inputs.add(name=name, datatype="BYTES", shape=[len(elements)])
            request.raw_input_contents.append(pack_bytes(elements))
    return request


def typed_request(images: list[bytes] = IMAGES) -> Request:
    """A request with its elements in the field of their type."""
    request = Request(model_name="digits")
    request.inputs.add(name="image", datatype="BYTES", shape=[len(images)]).contents.bytes_contents.extend(images)
    return request


@pytest.mark.parametrize(("request_of", "raw"), [(raw_request, True), (typed_request, False)])
def test_both_forms_say_the_same(request_of: Callable[[], Request], raw: bool) -> None:
    asked = read_message(request_of(), MOST)
    assert (asked.images, asked.references, asked.raw) == (IMAGES, None, raw)
    assert asked.outputs == (TEXT, CONFIDENCE, STATUS, ERROR)


def test_true_texts_may_come_first() -> None:
    request = raw_request(references=[b"1", b"", "ü".encode()])
    tensors, contents = list(request.inputs), list(request.raw_input_contents)
    turned = Request(inputs=tensors[::-1], raw_input_contents=contents[::-1])
    for each in (request, turned):
        asked = read_message(each, MOST)
        assert (asked.images, asked.references) == (IMAGES, [b"1", b"", "ü".encode()])


def test_a_true_text_that_cannot_be_one_fails_its_image_alone() -> None:
    asked = read_message(raw_request(references=[b"\xff", "ü".encode(), b"x" * 5000]), MOST)
    bad, good, long = requests_of(asked, ReadConfig(), request_ids("call", 3))
    assert str(bad) == "reference_text[0]: is not UTF-8"
    assert isinstance(good, ReadRequest)
    assert (good.request_id, good.content, good.reference) == ("call/1", b"", "ü")
    assert "at most 4096 characters" in str(long)


def test_a_lone_image_has_the_name_of_its_request() -> None:
    assert request_ids("call", 1) == ["call"]
    assert request_ids("call", 0) == []


def test_outputs_are_those_that_are_named_in_their_order() -> None:
    request = raw_request()
    request.outputs.add(name="status")
    request.outputs.add(name="alternatives")
    assert read_message(request, MOST).outputs == (STATUS, ALTERNATIVES)
    request = raw_request()
    request.parameters["max_alternatives"].int64_param = 2
    assert ALTERNATIVES in read_message(request, MOST).outputs


def test_no_images_are_none() -> None:
    for request in (raw_request([]), typed_request([])):
        assert read_message(request, MOST).images == []


def changed(change: Callable[[Request], object], request: Request | None = None) -> Request:
    request = request or raw_request()
    change(request)
    return request


WRONG: dict[str, tuple[Request, str]] = {
    "nothing": (Request(), "inputs: lack 'image'"),
    "true texts only": (
        Request(inputs=[Tensor(name="reference_text", datatype="BYTES", shape=[0])]),
        "inputs: lack 'image'",
    ),
    "id": (changed(lambda r: setattr(r, "id", "x" * 129)), "id: must have at most 128 characters, not 129"),
    "name": (
        changed(lambda r: setattr(r.inputs[0], "name", "x" * 500)),
        r"inputs\[0\].name: 'x{100}' is none of image, reference_text",
    ),
    "twice": (
        changed(lambda r: setattr(r.inputs[1], "name", "image"), raw_request(references=IMAGES)),
        r"inputs\[1\].name: 'image' is there twice",
    ),
    "datatype": (
        changed(lambda r: setattr(r.inputs[0], "datatype", "FP16")),
        r"inputs\[0\].datatype: of image must be BYTES, not 'FP16'",
    ),
    "two lengths": (
        changed(lambda r: r.inputs[0].shape.append(1)),
        r"inputs\[0\].shape: of image must be one length, the number of images, not \[3, 1\]",
    ),
    "no length": (changed(lambda r: r.inputs[0].ClearField("shape")), r"inputs\[0\].shape: .* not \[\]"),
    "many lengths": (
        changed(lambda r: r.inputs[0].shape.extend([1] * 10_000)),
        r"inputs\[0\].shape: .* not \[3, 1, 1, 1, 1, 1, 1, 1\]",
    ),
    "negative": (
        changed(lambda r: r.inputs[0].shape.__setitem__(0, -1)),
        r"inputs\[0\].shape: of image must be from 0 to 4 images, not -1",
    ),
    "huge": (
        changed(lambda r: r.inputs[0].shape.__setitem__(0, 2**62)),
        r"inputs\[0\].shape: of image must be from 0 to 4 images, not 4611686018427387904",
    ),
    "fewer elements": (
        changed(lambda r: r.inputs[0].shape.__setitem__(0, 2)),
        r"raw_input_contents\[0\]: of image has 9 bytes after the 2 elements",
    ),
    "cut": (
        changed(lambda r: r.raw_input_contents.__setitem__(0, r.raw_input_contents[0][:-1])),
        r"raw_input_contents\[0\]: of image ends within element 2, of 5 bytes of which 4 are there",
    ),
    "raw for one of two": (
        changed(lambda r: r.raw_input_contents.pop(), raw_request(references=IMAGES)),
        "raw_input_contents: must be one for each of the 2 inputs, not 1",
    ),
    "both forms": (
        changed(lambda r: r.inputs[0].contents.bytes_contents.append(b"x")),
        r"inputs\[0\].contents: must not be set where raw_input_contents are",
    ),
    "the field of another type": (
        changed(lambda r: r.inputs[0].contents.fp32_contents.append(1), typed_request()),
        r"inputs\[0\].contents.fp32_contents: must be empty",
    ),
    "typed, fewer elements": (
        changed(lambda r: r.inputs[0].contents.bytes_contents.pop(), typed_request()),
        r"inputs\[0\].contents.bytes_contents: of image has 2 elements where its shape says 3",
    ),
    "fewer true texts": (
        raw_request(references=[b"1"]),
        "inputs: have 3 elements of image and 1 of reference_text",
    ),
    "shared memory": (
        changed(lambda r: setattr(r.inputs[0].parameters["shared_memory_region"], "string_param", "a")),
        r"inputs\[0\].parameters: 'shared_memory_region' is not known",
    ),
    "output": (
        changed(lambda r: r.outputs.add(name="logits")),
        r"outputs\[0\].name: 'logits' is none of text, confidence, alternatives, status, error",
    ),
    "output twice": (
        changed(lambda r: r.outputs.extend([Request.InferRequestedOutputTensor(name="text")] * 2)),
        r"outputs\[1\].name: 'text' is there twice",
    ),
    "classes": (
        changed(lambda r: setattr(r.outputs.add(name="text").parameters["classification"], "int64_param", 3)),
        r"outputs\[0\].parameters: 'classification' is not known",
    ),
    "parameter": (
        changed(lambda r: setattr(r.parameters["sequence_id"], "int64_param", 3)),
        "parameters: 'sequence_id' is none of",
    ),
}


@pytest.mark.parametrize(("request_message", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused_by_its_field(request_message: Request, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        read_message(request_message, MOST)


WHOLE = [raw_request(references=IMAGES).SerializeToString(), typed_request().SerializeToString()] + [
    request.SerializeToString() for request, _ in WRONG.values() if request.ByteSize() < 1000
]


@given(st.sampled_from(WHOLE), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=3))
def test_damaged_requests_are_understood_or_refused(whole: bytes, changes: list[tuple[int, int]]) -> None:
    content = bytearray(whole)
    for place, value in changes:
        if content:
            content[place % len(content)] = value
    try:
        asked = read_message(Request.FromString(bytes(content)), MOST)
    except (DecodeError, RequestError):
        return
    assert len(asked.images) <= MOST
    assert asked.references is None or len(asked.references) == len(asked.images)
