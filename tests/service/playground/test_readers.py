from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from glyphline.models.decoding import DecodingOptions
from glyphline.models.errors import OptionsError, UndecodableImageError
from glyphline.service.client import Client, UnavailableError
from glyphline.service.playground import LocalReader, Reader, ServerReader
from glyphline.service.playground.readers import ServerError


def test_models_are_opened_once(local_reader: LocalReader, meter: bytes) -> None:
    (model,) = local_reader.models()
    assert local_reader._recognizer(model) is local_reader._recognizer(model)
    assert local_reader.read(meter, model, DecodingOptions()).seconds > 0


def test_a_server_reads_as_this_process_does(server: Any, client: Client, local_reader: Reader, meter: bytes) -> None:  # noqa: ANN401  (the class is conftest's)
    reader = ServerReader(client, server.target)
    assert reader.place == f"by the server at {server.target}"
    models = reader.models()
    assert models[0].name == "digits"
    model = next(each for each in models if each.name == "digits-ctc")
    options = DecodingOptions(decoder="beam", max_alternatives=3, token_details=True)
    here, there = (each.read(meter, model, options).reading for each in (local_reader, reader))
    assert (there.text, len(there.alternatives)) == (here.text, 3)
    assert [token.text for token in there.alternatives[0].tokens] == list("43434")
    guided = next(each for each in models if each.name == "words")
    assert (guided.decoder.name, guided.decoder.beam_width) == ("beam", 10)


def test_a_server_s_refusals_are_those_of_reading_here(server: Any, client: Client, meter: bytes) -> None:  # noqa: ANN401
    reader = ServerReader(client, server.target)
    model = reader.models()[0]
    with pytest.raises(UndecodableImageError):
        reader.read(b"no picture", model, DecodingOptions())
    with pytest.raises(OptionsError, match=re.escape("nothing is left to read")) as caught:
        reader.read(meter, model, DecodingOptions(allowed_characters="x"))
    assert caught.value.field == "allowed_characters"


def test_a_server_that_is_gone_is_told(unused_port: Callable[[], int], local_reader: Reader, meter: bytes) -> None:
    target = f"127.0.0.1:{unused_port()}"
    with Client(target, timeout=0.5) as client:
        reader = ServerReader(client, target)
        with pytest.raises(UnavailableError):
            reader.models()
        with pytest.raises(ServerError, match=re.escape(target)):
            reader.read(meter, local_reader.models()[0], DecodingOptions())
