import base64
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.models.errors import (
    ImageTooWideError,
    OptionsError,
    UndecodableImageError,
)
from glyphline.models.image import ImageLimits
from glyphline.service.playground import Choices, LocalReader, Picture, Problem, Shown, read_picture
from glyphline.service.playground.choices import BEAM
from glyphline.service.playground.reading import explain, picture_of

Encode = Callable[..., bytes]
LIMITS = ImageLimits()


def sent(content: bytes, kind: str = "file") -> dict[str, object]:
    address = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    return {"kind": kind, "address": address, "task": None, "number": 1}


@given(content=st.binary(max_size=50))
def test_a_picture_comes_over_as_it_was_sent(content: bytes) -> None:
    assert picture_of(sent(content)) == Picture("file", content)


def test_there_may_be_no_picture_yet() -> None:
    assert picture_of({"kind": "drawing", "address": "", "task": None}) is None
    assert picture_of({"kind": "file", "address": "data:", "task": "digits"}) == Picture("file", b"", "digits")


@pytest.mark.parametrize(
    "value",
    [
        None,
        "data:image/png;base64,AAAA",
        {"kind": "path", "address": "/etc/passwd", "task": None},
        {"kind": "file"},
        {"kind": "file", "address": "/etc/passwd", "task": None},
        {"kind": "file", "address": "data:text/plain,AAAA", "task": None},
        {"kind": "file", "address": "data:image/png;base64,äö", "task": None},
        {"kind": "file", "address": "data:image/png;base64,AAA", "task": None},
    ],
)
def test_what_the_page_would_not_send_is_refused(value: object) -> None:
    with pytest.raises(UndecodableImageError, match="did not come over"):
        picture_of(value)


def test_a_file_is_read_with_all_that_is_shown(local_reader: LocalReader, meter: bytes) -> None:
    (model,) = local_reader.models()
    shown = read_picture(local_reader, Picture("file", meter), model, Choices(alternatives=3), LIMITS)
    assert isinstance(shown, Shown)
    assert shown.reading.text == "43434"
    assert len(shown.reading.alternatives) == 3
    assert [token.text for token in shown.reading.alternatives[0].tokens] == list("43434")
    assert all(token.span is not None for token in shown.reading.alternatives[0].tokens)
    assert (shown.model.label, shown.search, shown.place) == (model.label, "beam search of 10", "on this machine")
    assert shown.seconds > 0


def test_a_drawing_is_cut_to_its_ink(local_reader: LocalReader, encode: Encode) -> None:
    (model,) = local_reader.models()
    canvas = np.full((200, 880), 255, np.uint8)
    canvas[50:150, 400:410] = 0
    drawn = read_picture(local_reader, Picture("drawing", encode(canvas)), model, Choices(), LIMITS)
    assert isinstance(drawn, Shown)
    assert (drawn.image.width, drawn.image.height) == (90, 180)
    whole = read_picture(local_reader, Picture("file", encode(canvas)), model, Choices(), LIMITS)
    assert isinstance(whole, Shown)
    assert (whole.image.width, whole.image.height) == (880, 200)


@pytest.mark.parametrize(
    ("picture", "choices", "message"),
    [
        (
            None,
            Choices(),
            "There is nothing to read yet. Draw something, drop or paste a picture, or choose an example.",
        ),
        (Picture("file", b""), Choices(), "The image is empty: it has no bytes. Choose another file."),
        (Picture("file", b"no picture"), Choices(), "PNG, JPEG, WebP, BMP, TIFF, GIF or PNM."),
        (None, Choices(BEAM, 2, 3), "Alternatives: 3 is more than the beam width of 2."),
    ],
)
def test_problems_are_told_in_plain_words(
    local_reader: LocalReader, picture: Picture | None, choices: Choices, message: str
) -> None:
    (model,) = local_reader.models()
    problem = read_picture(local_reader, picture, model, choices, LIMITS)
    assert isinstance(problem, Problem)
    assert problem.message.endswith(message)


def test_characters_that_the_model_lacks_are_named(local_reader: LocalReader, meter: bytes) -> None:
    (model,) = local_reader.models()
    problem = read_picture(local_reader, Picture("file", meter), model, Choices(allowed="xy"), LIMITS)
    assert problem == Problem("Allowed characters: nothing is left to read: the model's alphabet lacks 'xy'.")


def test_advice_follows_the_kind_of_error() -> None:
    assert explain(ImageTooWideError("it is long")).startswith("It is long. Cut it into shorter strips")
    assert explain(OptionsError("max_output_length", "must be at least 1")) == "Max output length: must be at least 1."
