"""Whatever a caller has becomes the bytes of an image file, without loss."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from glyphline.models.image import read_image
from glyphline.service.client import encode_image

GREY = (np.arange(6 * 9, dtype=np.uint8) * 4).reshape(6, 9)


def test_bytes_go_as_they_are() -> None:
    assert encode_image(b"anything") == b"anything"


def test_a_path_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    assert encode_image(tmp_path / "file") == b"content"


def test_a_missing_file_is_the_callers_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        encode_image(tmp_path / "missing")


def test_grey_arrays_keep_every_pixel() -> None:
    assert np.array_equal(read_image(encode_image(GREY)).pixels, GREY)


@pytest.mark.parametrize(
    "array",
    [GREY > 100, GREY.astype(np.uint16) * 257, np.stack([GREY] * 3, axis=-1), GREY[:, ::-1]],
    ids=["bool", "uint16", "colour", "reversed"],
)
def test_arrays_of_other_kinds(array: NDArray[Any]) -> None:
    pixels = read_image(encode_image(array)).pixels
    expected = {
        "bool": np.where(GREY > 100, 255, 0),
        "uint16": GREY,
        "uint8": GREY if array.ndim == 3 else GREY[:, ::-1],
    }
    assert np.abs(pixels.astype(int) - expected[array.dtype.name]).max() <= 1


@pytest.mark.parametrize("array", [GREY.astype(np.float32), GREY[None], np.zeros((2, 3, 5), np.uint8)])
def test_arrays_that_are_no_pictures_are_refused(array: NDArray[Any]) -> None:
    with pytest.raises(TypeError, match="an array must be"):
        encode_image(array)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "F", "I;16"])
def test_pillow_images_of_every_mode(mode: str) -> None:
    picture = Image.fromarray(GREY).convert("I" if mode == "I;16" else mode)
    if mode == "I;16":
        picture = Image.fromarray(GREY.astype(np.uint16) * 257)
    content = encode_image(picture)
    assert Image.open(io.BytesIO(content)).size == (9, 6)
    assert read_image(content).pixels.shape == (6, 9)


def test_nothing_else_is_an_image() -> None:
    with pytest.raises(TypeError, match="not str"):
        encode_image("strip.png")  # type: ignore[arg-type]
