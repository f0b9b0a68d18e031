from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from glyphline.models.decoding import DecodingOptions
from glyphline.models.errors import UndecodableImageError
from glyphline.models.image import ImageLimits
from glyphline.service.playground import LocalReader
from glyphline.service.playground.canvas import BlankDrawingError, strip_of

Encode = Callable[..., bytes]
WIDTH, HEIGHT = 880, 200


def canvas_with(ink: Image.Image, left: int, top: int) -> Image.Image:
    canvas = Image.new("L", (WIDTH, HEIGHT), 255)
    canvas.paste(ink, (left, top))
    return canvas


@settings(max_examples=20)
@given(left=st.integers(0, WIDTH - 60), top=st.integers(0, HEIGHT - 90))
def test_a_strip_is_the_same_wherever_it_was_drawn(encode: Encode, left: int, top: int) -> None:
    ink = Image.fromarray(np.tile(np.array([[0, 255, 0]], np.uint8), (90, 20)))
    strip = strip_of(encode(canvas_with(ink, left, top)), ImageLimits()).pixels
    assert strip.shape == (90 + 2 * 36, 60 + 2 * 36)
    assert (strip[36:-36, 36:-36] == np.asarray(ink)).all()
    assert strip[:36].min() == strip[:, :36].min() == 255


@pytest.mark.parametrize("mode", ["L", "RGBA"])
def test_a_blank_canvas_is_told(encode: Encode, mode: str) -> None:
    blank = Image.new(mode, (WIDTH, HEIGHT), 255 if mode == "L" else (0, 0, 0, 0))
    with pytest.raises(BlankDrawingError, match="nothing has been drawn"):
        strip_of(encode(blank), ImageLimits())


def test_what_is_transparent_is_paper(encode: Encode) -> None:
    pixels = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
    pixels[50:150, 300:320] = (0, 0, 0, 255)
    strip = strip_of(encode(pixels), ImageLimits()).pixels
    assert strip.shape == (180, 100)
    assert strip[0, 0] == 255
    assert strip[90, 50] == 0


def test_a_minus_does_not_fill_its_strip(encode: Encode) -> None:
    strip = strip_of(encode(canvas_with(Image.new("L", (90, 8)), 100, 60)), ImageLimits()).pixels
    rows = np.flatnonzero(strip.min(axis=1) == 0)
    assert rows.size == 8
    assert strip.shape[0] > 5 * 8
    assert abs(rows.mean() - strip.shape[0] / 2) <= 1


def test_what_is_no_picture_is_refused() -> None:
    with pytest.raises(UndecodableImageError):
        strip_of(b"not a picture", ImageLimits())


@pytest.mark.parametrize("height", [40, 160])
def test_digits_are_read_however_small_they_were_drawn(
    encode: Encode, strips_folder: Path, local_reader: LocalReader, height: int
) -> None:
    with Image.open(strips_folder / "mnist_0011.png") as digits:
        ink = digits.convert("L").resize((round(digits.width * height / digits.height), height))
    canvas = canvas_with(ink, 500, 30)
    (model,) = local_reader.models()
    answer = local_reader.read(strip_of(encode(canvas), ImageLimits()), model, DecodingOptions())
    assert answer.reading.text == "0011"
