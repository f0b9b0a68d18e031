"""What is sent: configurations, and batches that fit into messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.errors import OptionsError
from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.service.client.errors import InputError, InvalidRequestError
from glyphline.service.client.requests import batches, make_config, make_item, make_items
from glyphline.service.conversion import read_config


@given(
    images=st.lists(st.integers(0, 1200), max_size=40),
    max_images=st.integers(1, 8),
    max_bytes=st.integers(1024, 3000),
)
def test_batches_keep_order_and_fit_into_messages(images: list[int], max_images: int, max_bytes: int) -> None:
    items = [make_item(bytes(size), item_id=str(index)) for index, size in enumerate(images)]
    seen: list[str | None] = []
    for batch in batches(items, max_images=max_images, max_bytes=max_bytes):
        if isinstance(batch, InvalidRequestError):
            seen.append(None)
        else:
            assert 1 <= len(batch) <= max_images
            assert api.BatchRecognizeRequest(items=batch).ByteSize() <= max_bytes
            seen += [item.id for item in batch]
    assert len(seen) == len(images)
    assert all(name in (None, str(index)) for index, name in enumerate(seen))


def test_an_image_that_fits_into_no_message_fails_alone() -> None:
    items = [make_item(b"a"), make_item(bytes(5000)), make_item(b"b")]
    first, error, last = batches(items, max_images=10, max_bytes=4096)
    assert isinstance(error, InvalidRequestError)
    assert "4096" in str(error)
    assert [item.image.content for batch in (first, last) for item in batch] == [b"a", b"b"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "options",
    [
        DecodingOptions(),
        DecodingOptions("greedy"),
        DecodingOptions("beam", beam_width=7, max_alternatives=3, length_penalty=0.5),
        DecodingOptions("beam", max_output_length=5, allowed_characters="0123", token_details=True),
    ],
)
def test_options_arrive_as_they_were(options: DecodingOptions) -> None:
    config = read_config(make_config("digits", 2, options, "high"))
    assert (config.model, config.version, config.priority) == ("digits", "2", 1)
    assert config.options == options


def test_no_options_are_the_defaults() -> None:
    config = read_config(make_config("", None, None, "normal"))
    assert (config.model, config.version, config.options) == ("", "", DecodingOptions())


def test_bad_options_are_refused_before_anything_is_sent() -> None:
    with pytest.raises(OptionsError, match="beam_width"):
        make_config("", None, DecodingOptions("beam", beam_width=0), "normal")
    with pytest.raises(OptionsError, match="length_penalty"):
        make_config("", None, DecodingOptions(length_penalty=0.5), "normal")


def test_a_priority_that_is_none_is_refused() -> None:
    with pytest.raises(OptionsError, match="priority: must be low, normal, high, not 'urgent'"):
        make_config("", None, None, "urgent")  # type: ignore[arg-type]


def test_an_input_that_is_no_image_keeps_its_place(tmp_path: Path) -> None:
    inputs = [b"a", tmp_path / "missing.png", b"b", "strip.png", b"c"]
    first, missing, second, text, third = batches(
        make_items(inputs, None),  # type: ignore[arg-type]
        max_images=10,
        max_bytes=4096,
    )
    assert isinstance(missing, InputError)
    assert str(missing).startswith(f"{tmp_path / 'missing.png'}: No such file or directory")
    assert isinstance(missing.__cause__, FileNotFoundError)
    assert isinstance(text, InputError)
    assert "not str" in str(text)
    sent = [item.image.content for batch in (first, second, third) for item in batch]  # type: ignore[union-attr]
    assert sent == [b"a", b"b", b"c"]


def test_an_empty_reference_is_a_reference() -> None:
    known, unknown = make_items([b"a", b"b"], ["", None])
    assert isinstance(known, api.BatchItem)
    assert isinstance(unknown, api.BatchItem)
    assert known.HasField("reference_text")
    assert not unknown.HasField("reference_text")


def test_references_must_match_the_images() -> None:
    with pytest.raises(ValueError, match="shorter"):
        list(make_items([b"a", b"b"], ["1"]))
