from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from glyphline.models.decoding import DecodingOptions
from glyphline.models.errors import OptionsError, UndecodableImageError
from glyphline.models.image import read_image
from glyphline.service.client import Client, UnavailableError
from glyphline.service.playground import LocalReader, Reader, ServerReader
from glyphline.service.playground.readers import ServerError


def test_models_are_opened_once(local_reader: LocalReader, meter: bytes) -> None:
    (model,) = local_reader.models()
    assert local_reader._recognizer(model) is local_reader._recognizer(model)
    assert local_reader.read(meter, model, DecodingOptions()).seconds > 0


@pytest.fixture(scope="module")
def served(launch: Callable[..., Any]) -> Iterator[ServerReader]:
    """Asks a server that has the model which is read with here, too."""
    target = launch(models="digits-ctc").target
    with Client(target) as client:
        client.wait_until_ready(60)
        yield ServerReader(client, target)


def test_a_server_reads_as_this_process_does(served: ServerReader, local_reader: LocalReader, meter: bytes) -> None:
    assert served.place.startswith("by the server at 127.0.0.1:")
    (model,) = served.models()
    assert (model.label, model.task) == (local_reader.models()[0].label, local_reader.models()[0].task)
    assert (model.decoder.name, model.decoder.beam_width) == ("greedy", 10)
    options = DecodingOptions(decoder="beam", max_alternatives=3, token_details=True)
    here = local_reader.read(meter, local_reader.models()[0], options).reading
    there = served.read(meter, model, options).reading
    assert (there.text, len(there.alternatives)) == (here.text, 3)
    assert [token.text for token in there.alternatives[0].tokens] == list("43434")
    assert served.read(read_image(meter), model, options).reading.text == "43434"


def test_a_server_s_refusals_are_those_of_reading_here(served: ServerReader, meter: bytes) -> None:
    (model,) = served.models()
    with pytest.raises(UndecodableImageError):
        served.read(b"no picture", model, DecodingOptions())
    with pytest.raises(OptionsError, match=re.escape("nothing is left to read")) as caught:
        served.read(meter, model, DecodingOptions(allowed_characters="x"))
    assert caught.value.field == "allowed_characters"


def test_a_server_that_is_gone_is_told(unused_port: Callable[[], int], local_reader: Reader, meter: bytes) -> None:
    target = f"127.0.0.1:{unused_port()}"
    with Client(target, timeout=0.5) as client:
        reader = ServerReader(client, target)
        with pytest.raises(UnavailableError):
            reader.models()
        with pytest.raises(ServerError, match=re.escape(target)):
            reader.read(meter, local_reader.models()[0], DecodingOptions())
