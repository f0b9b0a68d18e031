"""Lexicons and language models: held by the server and named, or sent with a request; and what is wrong with them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from PIL import Image

from glyphline.models.decoding import CharacterModel, DecodingOptions, Lexicon
from glyphline.models.errors import OptionsError
from glyphline.models.recognizer import Recognizer, load_recognizer
from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
from glyphline.service.client import Client, Result
from glyphline.service.client.errors import from_call
from glyphline.service.client.requests import channel_options
from glyphline.service.errors import StartError
from glyphline.service.guides import load_guides

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess

Code = grpc.StatusCode
WORDS = ("7777", "123", "90")


@pytest.fixture
def stub(server_target: str) -> Iterator[rpc.RecognitionServiceStub]:
    """Calls as they are, for what no client of ours would send."""
    with grpc.insecure_channel(server_target, channel_options(2**20)) as channel:
        yield rpc.RecognitionServiceStub(channel)


@pytest.mark.parametrize("several_words", [False, True])
@pytest.mark.parametrize("model", ["digits", "digits-ctc"])
def test_a_lexicon_is_sent_or_named_and_reads_as_it_does_here(
    client: Client,
    recognizers: dict[str, Recognizer],
    images: list[bytes],
    model: str,
    several_words: bool,
) -> None:
    options = DecodingOptions(lexicon=Lexicon(WORDS), several_words=several_words)
    here = recognizers[model].recognize(images[:4], options)
    for lexicon in (Lexicon(WORDS), "codes"):
        asked = DecodingOptions(lexicon=lexicon, several_words=several_words)
        there = client.recognize_many(images[:4], model=model, options=asked)
        texts = [outcome.text for outcome in there if isinstance(outcome, Result)]
        assert texts == [getattr(outcome, "text", None) for outcome in here]
        assert all(word in WORDS for text in texts if text for word in (text.split(" ") if several_words else [text]))


def test_a_language_model_is_named(client: Client, images: list[bytes]) -> None:
    for weight, bonus in ((5.0, 0.0), (0.0, 0.0)):
        options = DecodingOptions(language_model="one", language_model_weight=weight, length_bonus=bonus)
        (outcome,) = client.recognize_many(images[:1], options=options)
        assert isinstance(outcome, Result)
        assert (len(outcome.text) <= 1) == bool(weight)


def test_a_models_own_language_model_guides_who_names_no_decoder(client: Client, words_folder: Path) -> None:
    recognizer = load_recognizer("words")
    assert recognizer.language_model is not None
    pictures = [file.read_bytes() for file in sorted(words_folder.glob("*.jpg"))[:4]]
    worn = [shrink(picture, rows) for picture in pictures for rows in (9, 12)]
    found = {}
    for decoder in (None, "greedy"):
        options = DecodingOptions(decoder)
        here = recognizer.recognize(worn, options)
        there = client.recognize_many(worn, model="words", options=options)
        found[decoder] = [getattr(outcome, "text", None) for outcome in there]
        assert found[decoder] == [getattr(outcome, "text", None) for outcome in here]
    assert found[None] != found["greedy"]


def shrink(picture: bytes, rows: int) -> bytes:
    """Brings a picture to so few rows that not all can be read."""
    with Image.open(io.BytesIO(picture)) as image:
        small = image.convert("L").resize((round(image.width * rows / image.height), rows))
    buffer = io.BytesIO()
    small.save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("config", "code", "field"),
    [
        ({"lexicon": {}}, Code.INVALID_ARGUMENT, "config.lexicon"),
        ({"lexicon": {"words": [" ", ""]}}, Code.INVALID_ARGUMENT, "config.lexicon"),
        ({"lexicon": {"words": ["1"], "name": "codes"}}, Code.INVALID_ARGUMENT, "config.lexicon"),
        ({"lexicon": {"words": ["alpha"]}}, Code.INVALID_ARGUMENT, "config.lexicon"),
        ({"lexicon": {"words": ["1"] * 5001}}, Code.INVALID_ARGUMENT, "config.lexicon.words"),
        ({"lexicon": {"words": ["1" * 300_000]}}, Code.INVALID_ARGUMENT, "config.lexicon.words"),
        ({"lexicon": {"words": ["1"]}, "greedy": {}}, Code.INVALID_ARGUMENT, "config.lexicon"),
        ({"lexicon": {"name": "words"}}, Code.INVALID_ARGUMENT, "config.lexicon"),
        ({"lexicon": {"name": "nothing"}}, Code.NOT_FOUND, ""),
        ({"language_model": {}}, Code.INVALID_ARGUMENT, "config.language_model.name"),
        ({"language_model": {"name": "codes"}}, Code.NOT_FOUND, ""),
        ({"language_model": {"name": "one"}, "greedy": {}}, Code.INVALID_ARGUMENT, "config.language_model"),
        (
            {"language_model": {"name": "one", "weight": -1.0}},
            Code.INVALID_ARGUMENT,
            "config.language_model.weight",
        ),
        ({"language_model": {"name": "one"}, "length_bonus": 11.0}, Code.INVALID_ARGUMENT, "config.length_bonus"),
        ({"length_bonus": 1.0}, Code.INVALID_ARGUMENT, "config.length_bonus"),
    ],
)
def test_what_is_wrong_is_told_with_its_field(
    stub: rpc.RecognitionServiceStub, images: list[bytes], config: dict[str, Any], code: grpc.StatusCode, field: str
) -> None:
    request = api.RecognizeRequest(image=api.Image(content=images[0]), config=api.RecognitionConfig(**config))
    with pytest.raises(grpc.RpcError) as failure:
        stub.Recognize(request, timeout=60)
    error = from_call(failure.value)
    assert (error.code, [violation.field for violation in error.field_violations]) == (code, [field] if field else [])
    if code is Code.NOT_FOUND:
        assert error.reason == "GUIDE_NOT_FOUND"
        assert "codes" in error.message or "one" in error.message


def test_an_items_own_lexicon_fails_alone(stub: rpc.RecognitionServiceStub, images: list[bytes]) -> None:
    items = [
        api.BatchItem(image=api.Image(content=images[0]), config=api.RecognitionConfig(lexicon=api.Lexicon(name=name)))
        for name in ("codes", "nothing")
    ]
    response = stub.BatchRecognize(api.BatchRecognizeRequest(items=items), timeout=60)
    assert [result.error.code for result in response.results] == [0, Code.NOT_FOUND.value[0]]


def test_a_language_model_cannot_be_sent(client: Client, images: list[bytes], guide_files: Path) -> None:
    options = DecodingOptions(language_model=CharacterModel.read(guide_files / "one.arpa"))
    with pytest.raises(OptionsError, match="name one"):
        client.recognize(images[0], options=options)


def test_a_name_means_nothing_here(recognizers: dict[str, Recognizer], images: list[bytes]) -> None:
    with pytest.raises(OptionsError, match="only a server"):
        recognizers["digits"].recognize(images[:1], DecodingOptions(lexicon="codes"))


@pytest.mark.parametrize(
    ("lexicon", "model", "message"),
    [("none.txt", "one.arpa", "lexicon .*No such file"), ("codes.txt", "codes.txt", "language model .*no ARPA file")],
)
def test_files_are_read_before_anything_is_served(guide_files: Path, lexicon: str, model: str, message: str) -> None:
    with pytest.raises(StartError, match=message):
        load_guides({"mine": guide_files / lexicon}, {"mine": guide_files / model})


def test_a_server_does_not_start_without_its_files(start: Callable[..., ServerProcess], guide_files: Path) -> None:
    server = start(lexicons=f"mine={guide_files / 'none.txt'}")
    assert server.wait() == 1
    assert "No such file" in server.wait_for_line("cannot start")["message"]
