from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies
from PIL import Image

from glyphline.models.grey import GreyArray, grey_pixels
from glyphline.models.image import read_image

# Every grey level, each on two rows.
RAMP: GreyArray = np.tile(np.arange(256, dtype=np.uint8), (2, 1))
# A picture of two levels, for modes and files that hold no more: a stroke of ink on paper.
STROKE: GreyArray = np.full((9, 21), 255, dtype=np.uint8)
STROKE[2:7, 9:12] = 0


def largest_difference(first: GreyArray, second: GreyArray) -> int:
    assert first.shape == second.shape
    return int(np.abs(first.astype(int) - second.astype(int)).max())


def in_mode(mode: str, pixels: GreyArray = RAMP) -> Image.Image:
    """The picture in one of Pillow's modes."""
    grey = Image.fromarray(pixels)
    deep = pixels.astype(np.uint16) * 257
    if mode.startswith("I;16"):
        return Image.frombytes(mode, grey.size, deep.astype(">u2" if mode == "I;16B" else "<u2").tobytes())
    if mode == "I":
        return Image.fromarray(deep.astype(np.int32))
    # Some modes can be reached from these alone.
    between = {"La": "LA", "RGBa": "RGBA", "HSV": "RGB", "LAB": "RGB", "RGBX": "RGB"}.get(mode, "L")
    return grey.convert(between).convert(mode)


EIGHT_BIT = ["L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV", "LAB"]
DEEP = ["I;16", "I;16L", "I;16B", "I", "F"]


@pytest.mark.parametrize("mode", EIGHT_BIT + DEEP)
def test_the_same_picture_in_every_mode_has_the_same_grey_levels(mode: str) -> None:
    assert largest_difference(grey_pixels(in_mode(mode)), RAMP) <= (1 if mode == "LAB" else 0)


@pytest.mark.parametrize("mode", ["1", *EIGHT_BIT, *DEEP])
def test_ink_on_paper_is_the_same_in_every_mode(mode: str) -> None:
    assert largest_difference(grey_pixels(in_mode(mode, STROKE)), STROKE) <= (1 if mode == "LAB" else 0)


@pytest.mark.parametrize("mode", EIGHT_BIT + DEEP)
def test_the_result_is_bytes_by_rows(mode: str) -> None:
    pixels = grey_pixels(in_mode(mode))
    assert pixels.dtype == np.uint8
    assert pixels.shape == (2, 256)


def test_every_mode_that_pillow_knows_is_handled() -> None:
    tested = {"1", *EIGHT_BIT, *DEEP, "I;16N"}
    assert set(Image.MODES) <= tested


@pytest.mark.parametrize(
    ("colour", "grey"), [((255, 0, 0), 76), ((0, 255, 0), 150), ((0, 0, 255), 29), ((200, 120, 40), 135)]
)
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "CMYK", "HSV", "RGBX"])
def test_colours_become_luma(colour: tuple[int, int, int], grey: int, mode: str) -> None:
    image = Image.new("RGB", (3, 2), colour)
    if mode == "P":
        image = image.quantize(8)
    pixels = grey_pixels(image.convert(mode))
    assert largest_difference(pixels, np.full((2, 3), grey, dtype=np.uint8)) <= 1


# Transparency


def painted(ink: int, *, mode: str = "LA", around: int = 0) -> Image.Image:
    """The stroke as ink of one level on a transparent ground, whose hidden level is `around`."""
    alpha = 255 - STROKE
    level = np.where(alpha > 0, ink, around).astype(np.uint8)
    if mode == "PA":  # Pillow's own conversion to it makes everything opaque
        image = Image.fromarray(level).convert("P")
        image.putalpha(Image.fromarray(alpha))
        return image
    return Image.merge("LA", (Image.fromarray(level), Image.fromarray(alpha))).convert(mode)


@pytest.mark.parametrize("around", [0, 128, 255])
@pytest.mark.parametrize("mode", ["LA", "RGBA", "PA"])
def test_dark_ink_on_nothing_is_dark_ink_on_white(mode: str, around: int) -> None:
    assert np.array_equal(grey_pixels(painted(0, mode=mode, around=around)), STROKE)


@pytest.mark.parametrize("around", [0, 128, 255])
@pytest.mark.parametrize("mode", ["LA", "RGBA", "PA"])
def test_white_ink_on_nothing_is_white_ink_on_black(mode: str, around: int) -> None:
    assert np.array_equal(grey_pixels(painted(255, mode=mode, around=around)), 255 - STROKE)


@pytest.mark.parametrize("mode", ["La", "RGBa"])
def test_premultiplied_ink_keeps_its_level(mode: str) -> None:
    image = painted(80, mode=mode.upper()).convert(mode)
    assert np.array_equal(grey_pixels(image), np.where(STROKE == 0, 80, 255))


@pytest.mark.parametrize("ink", range(0, 256, 15))
def test_ink_of_any_level_on_nothing_stays_visible(ink: int) -> None:
    assert np.ptp(grey_pixels(painted(ink))) >= 64


def test_half_transparent_ink_mixes_with_white() -> None:
    image = Image.merge("LA", (Image.new("L", (3, 2), 0), Image.new("L", (3, 2), 128)))
    assert np.array_equal(grey_pixels(image), np.full((2, 3), 127))


def test_an_opaque_page_with_transparent_margins_lies_on_white() -> None:
    level = np.full((20, 40), 200, dtype=np.uint8)
    level[8:12, 10:30] = 100
    alpha = np.zeros_like(level)
    alpha[4:16, 4:36] = 255
    pixels = grey_pixels(Image.merge("LA", (Image.fromarray(level), Image.fromarray(alpha))))
    assert np.array_equal(pixels, np.where(alpha == 255, level, 255))


def test_a_picture_that_is_all_transparent_is_blank() -> None:
    assert np.array_equal(grey_pixels(Image.new("RGBA", (4, 3), (10, 20, 30, 0))), np.full((3, 4), 255))


def test_an_alpha_channel_that_hides_nothing_changes_nothing() -> None:
    white_on_white = Image.new("RGBA", (4, 3), (255, 255, 255, 255))
    assert np.array_equal(grey_pixels(white_on_white), np.full((3, 4), 255))


@pytest.mark.parametrize(("ink", "expected"), [(0, STROKE), (255, 255 - STROKE)])
@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "I;16"])
def test_a_level_declared_transparent_is_transparent(
    mode: str, ink: int, expected: GreyArray, encode: Callable[..., bytes]
) -> None:
    ground = 255 - ink
    level = np.where(STROKE == 0, ink, ground).astype(np.uint8)
    image = in_mode(mode, level)
    transparent: Any = {"RGB": (ground,) * 3, "I;16": ground * 257}.get(mode, ground)
    if mode == "P":
        transparent = image.getpixel((0, 0))
    content = encode(image, "PNG", transparency=transparent)
    assert np.array_equal(read_image(content).pixels, expected)


def test_a_palette_may_declare_many_opacities(encode: Callable[..., bytes]) -> None:
    image = Image.frombytes("P", (3, 1), bytes([0, 1, 2]))
    image.putpalette([0, 0, 0] * 3)
    pixels = read_image(encode(image, "PNG", transparency=bytes([255, 128, 0]))).pixels
    assert pixels.tolist() == [[0, 127, 255]]


# Deep pixels


@pytest.mark.parametrize("mode", ["I;16", "I;16B", "I;16L"])
def test_16_bit_levels_are_scaled_and_never_clipped(mode: str) -> None:
    levels = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    order = ">u2" if mode == "I;16B" else "<u2"
    pixels = grey_pixels(Image.frombytes(mode, (256, 256), levels.astype(order).tobytes()))
    assert np.array_equal(pixels, np.rint(levels / 257))
    assert np.bincount(pixels.ravel(), minlength=256).min() >= 129  # no level is crowded, as clipping makes white


def test_a_16_bit_picture_of_low_levels_is_a_dark_picture() -> None:
    levels = np.where(STROKE == 0, 0, 4095).astype(np.uint16)
    assert np.array_equal(grey_pixels(Image.fromarray(levels)), np.where(STROKE == 0, 0, 16))


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([0, 128, 255], [0, 128, 255]),
        ([0, 256, 65535], [0, 1, 255]),
        ([0, 32896, 65535], [0, 128, 255]),
        ([0, 65536, 131072], [0, 128, 255]),
        ([-100, 0, 100], [0, 128, 255]),
        ([-(2**31), 0, 2**31 - 1], [0, 128, 255]),
        ([-5, -5, -5], [255, 255, 255]),
    ],
)
def test_32_bit_integers(levels: list[int], expected: list[int]) -> None:
    assert grey_pixels(Image.fromarray(np.array([levels], dtype=np.int32))).tolist() == [expected]


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([0.0, 0.5, 1.0], [0, 128, 255]),
        ([0.0, 128.0, 255.0], [0, 128, 255]),
        ([0.0, 32896.0, 65535.0], [0, 128, 255]),
        ([-1.0, 0.0, 1.0], [0, 128, 255]),
        ([1e30, 2e30, 3e30], [0, 128, 255]),
        ([-3.4e38, 0.0, 3.4e38], [0, 128, 255]),
        ([NAN, 0.25, 0.25], [64, 64, 64]),
        ([-INF, 0.0, 1.0, INF], [0, 0, 255, 255]),
        ([NAN, INF, -INF], [255, 255, 255]),
        ([7e9, 7e9, 7e9], [255, 255, 255]),
    ],
)
def test_floats(levels: list[float], expected: list[int]) -> None:
    assert grey_pixels(Image.fromarray(np.array([levels], dtype=np.float32))).tolist() == [expected]


@given(numpy_strategies.arrays(np.float32, (3, 4)))
def test_any_floats_become_grey_levels(levels: np.ndarray[Any, np.dtype[np.float32]]) -> None:
    pixels = grey_pixels(Image.fromarray(levels))
    assert pixels.dtype == np.uint8
    assert pixels.shape == (3, 4)


@given(numpy_strategies.arrays(np.float32, (4, 5), elements=st.floats(-1000, 1000, width=32)))
def test_floats_keep_their_order(levels: np.ndarray[Any, np.dtype[np.float32]]) -> None:
    ordered = np.sort(levels, axis=None).reshape(4, 5)
    assert (np.diff(grey_pixels(Image.fromarray(ordered)).ravel().astype(int)) >= 0).all()
