from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies
from PIL import Image
from pydantic import ValidationError

from glyphline.models.errors import ImageTooWideError
from glyphline.models.grey import GreyArray
from glyphline.models.image import GreyImage, ImageSettings, normalise, normalised_width, read_image, to_grey

SETTINGS = ImageSettings()
BARE = ImageSettings(padding=0)

sizes = st.tuples(st.integers(1, 90), st.integers(1, 120))
pictures = numpy_strategies.arrays(np.uint8, sizes) | st.builds(
    # Few levels: ties and even medians, which random bytes never have.
    lambda levels, bits: np.array(levels, dtype=np.uint8)[bits],
    st.lists(st.integers(0, 255), min_size=3, max_size=3),
    numpy_strategies.arrays(np.intp, sizes, elements=st.integers(0, 2)),
)


def by_the_book(pixels: GreyArray, settings: ImageSettings) -> GreyArray:
    """The contract of `normalise`, step by step and without its shortcuts."""
    height, width = pixels.shape
    size = (max(1, round(width * settings.height / height)), settings.height)
    scaled = np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR)).astype(object)
    if settings.polarity == "auto":
        deviations = scaled * scaled.size - scaled.sum()  # exact, in Python's integers
        keep = (deviations**3).sum() > 0
    else:
        keep = settings.polarity == "light_on_dark"
    ink = scaled if keep else 255 - scaled
    stretched = np.floor((ink - ink.min()) * 255 / max(ink.max() - ink.min(), 48) + 0.5).astype(np.uint8)
    ground = int(np.floor(np.median(stretched) + 0.5))
    return np.pad(stretched, ((0, 0), (settings.padding, settings.padding)), constant_values=ground)


@given(
    pictures,
    st.builds(
        ImageSettings,
        height=st.integers(1, 64),
        padding=st.integers(0, 9),
        max_width=st.just(100_000),
        polarity=st.sampled_from(["auto", "dark_on_light", "light_on_dark"]),
    ),
)
def test_strips_are_normalised_by_the_book(pixels: GreyArray, settings: ImageSettings) -> None:
    result = normalise(GreyImage(pixels), settings)
    assert result.dtype == np.uint8
    assert result.shape == (settings.height, normalised_width(pixels.shape[1], pixels.shape[0], settings))
    assert np.array_equal(result, by_the_book(pixels, settings))


# Polarity


def strip_of(ink: int, ground: int, height: int = 40) -> GreyArray:
    pixels = np.full((height, 100), ground, dtype=np.uint8)
    pixels[height // 4 : -height // 4, 40:50] = ink
    return pixels


@pytest.mark.parametrize(("ink", "ground"), [(0, 255), (255, 0), (90, 200), (200, 90), (120, 121), (30, 250)])
def test_ink_comes_out_bright_on_a_dark_ground(ink: int, ground: int) -> None:
    result = normalise(GreyImage(strip_of(ink, ground)), SETTINGS)
    assert result[:, :44].max() == 0
    assert result[20, 49] == min(255, round(abs(ink - ground) * 255 / 48))


def has_skew(pixels: GreyArray) -> bool:
    levels = pixels.astype(object)
    return bool(((levels * levels.size - levels.sum()) ** 3).sum() != 0)


@given(pictures)
def test_a_negative_at_the_models_height_gives_exactly_the_same(pixels: GreyArray) -> None:
    settings = ImageSettings(height=pixels.shape[0])
    assume(has_skew(pixels))
    assert np.array_equal(normalise(GreyImage(pixels), settings), normalise(GreyImage(255 - pixels), settings))


def test_a_negative_of_a_real_strip_gives_the_same_up_to_the_rounding_of_the_scaling(
    strips: list[tuple[Path, str]],
) -> None:
    for path, _ in strips:
        pixels = read_image(path.read_bytes()).pixels
        positive, negative = normalise(GreyImage(pixels), SETTINGS), normalise(GreyImage(255 - pixels), SETTINGS)
        # One grey level of rounding, as far as the stretching takes it apart.
        span = 255 / max(int(np.ptp(pixels)) - 2, 48)
        assert np.abs(positive.astype(int) - negative).max() <= np.ceil(2 * span), path.name


def test_real_strips_are_bright_ink_on_a_dark_ground(strips: list[tuple[Path, str]]) -> None:
    for path, _ in strips:
        result = normalise(read_image(path.read_bytes()), SETTINGS)
        assert np.median(result) < 128, path.name
        assert result.max() > 200, path.name


def test_without_skew_ink_is_taken_to_be_dark() -> None:
    halves = np.repeat(np.array([[0, 255]], dtype=np.uint8), 20, axis=1).repeat(40, axis=0)
    assert np.array_equal(normalise(GreyImage(halves), BARE), 255 - halves)


@pytest.mark.parametrize(("polarity", "keeps"), [("dark_on_light", False), ("light_on_dark", True)])
def test_a_polarity_given_overrules_the_picture(
    polarity: Literal["dark_on_light", "light_on_dark"], keeps: bool
) -> None:
    settings = ImageSettings(padding=0, polarity=polarity)
    for pixels in (strip_of(0, 255), strip_of(255, 0)):
        assert np.array_equal(normalise(GreyImage(pixels), settings), pixels if keeps else 255 - pixels)


# Contrast


@pytest.mark.parametrize("level", [0, 1, 127, 255])
def test_a_blank_strip_is_all_ground(level: int) -> None:
    blank = np.full((30, 70), level, dtype=np.uint8)
    assert normalise(GreyImage(blank), SETTINGS).max() == 0


def test_faint_noise_is_not_stretched_to_ink() -> None:
    noise = np.random.default_rng(1).integers(200, 206, (40, 200), dtype=np.uint8)
    assert normalise(GreyImage(noise), SETTINGS).max() <= 27  # 5 of 48 levels


@pytest.mark.parametrize("span", [48, 100, 255])
def test_contrast_is_stretched_to_the_full_range(span: int) -> None:
    result = normalise(GreyImage(strip_of(0, span)), SETTINGS)
    assert (result.min(), result.max()) == (0, 255)


@given(pictures, st.integers(1, 3), st.integers(0, 60))
def test_brightness_and_contrast_do_not_matter(pixels: GreyArray, gain: int, offset: int) -> None:
    settings = ImageSettings(height=pixels.shape[0], max_width=10_000)  # without scaling there is no rounding
    dim = (pixels // 4).astype(np.uint8)
    assume(dim.size > 1)
    dim.flat[0], dim.flat[-1] = 0, 63  # enough contrast to be stretched in full
    bright = (dim * gain + offset).astype(np.uint8)
    first, second = normalise(GreyImage(dim), settings), normalise(GreyImage(bright), settings)
    assert np.array_equal(first, second)


# Geometry


@pytest.mark.parametrize(
    ("width", "height", "expected"),
    [(200, 64, 133), (100, 40, 108), (1, 200, 9), (200, 1, 8008), (1, 1, 48), (3, 80, 10), (5, 80, 10), (12, 32, 23)],
)
def test_the_width_follows_from_the_strips_own_size(width: int, height: int, expected: int) -> None:
    assert normalised_width(width, height, ImageSettings(max_width=10_000)) == expected


@pytest.mark.parametrize(("width", "height"), [(1, 200), (1, 20_000), (50, 1), (1, 1), (2, 3)])
def test_slivers_are_at_least_one_pixel_wide(width: int, height: int) -> None:
    settings = ImageSettings(padding=0)
    pixels = np.arange(width * height, dtype=np.uint8).reshape(height, width)
    result = normalise(GreyImage(pixels), settings)
    assert result.shape == (40, max(1, round(width * 40 / height)))


def test_too_wide_strips_are_refused_and_not_squashed() -> None:
    widest = GreyImage(np.zeros((40, 2040), dtype=np.uint8))
    assert normalise(widest, SETTINGS).shape == (40, 2048)
    too_wide = GreyImage(np.zeros((40, 2041), dtype=np.uint8))
    message = "2041 x 40 pixels is 2049 pixels wide at the model's height of 40; the limit is 2048"
    with pytest.raises(ImageTooWideError, match=message):
        normalise(too_wide, SETTINGS)
    with pytest.raises(ImageTooWideError, match=message):
        normalised_width(2041, 40, SETTINGS)


def test_a_vast_aspect_ratio_is_refused_before_anything_is_scaled() -> None:
    with pytest.raises(ImageTooWideError):
        normalise(GreyImage(np.zeros((1, 25_000_000), dtype=np.uint8)), SETTINGS)


@pytest.mark.parametrize("height", [20, 40, 64, 100])
@pytest.mark.parametrize("left", [0, 100, 360])
def test_columns_can_be_traced_back_to_the_image(height: int, left: int) -> None:
    pixels = np.full((height, 400), 255, dtype=np.uint8)
    pixels[:, left : left + 40] = 0
    columns = np.flatnonzero(normalise(GreyImage(pixels), SETTINGS)[20] > 127)
    scale = height / SETTINGS.height
    assert (columns[0] - SETTINGS.padding) * scale == pytest.approx(left, abs=scale)
    assert (columns[-1] + 1 - SETTINGS.padding) * scale == pytest.approx(left + 40, abs=scale)


def test_the_padding_is_ground_even_where_ink_touches_the_edge() -> None:
    pixels = np.full((40, 60), 230, dtype=np.uint8)
    pixels[10:30, :5] = 20
    pixels[10:30, -5:] = 20
    result = normalise(GreyImage(pixels), SETTINGS)
    assert result[:, :4].max() == result[:, -4:].max() == 0
    assert result[20, 4] == result[20, -5] == 255


def test_the_image_is_left_as_it_was() -> None:
    pixels = strip_of(0, 255)
    before = pixels.copy()
    pixels.setflags(write=False)
    result = normalise(GreyImage(pixels), SETTINGS)
    assert np.array_equal(pixels, before)
    assert result.flags.c_contiguous
    assert result.flags.writeable


@pytest.mark.parametrize("view", [np.s_[::-1, ::-1], np.s_[::2, ::3], np.s_[5:, 7:]])
def test_any_view_of_pixels_is_read(view: tuple[slice, slice]) -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (80, 120), dtype=np.uint8)
    expected = normalise(GreyImage(np.ascontiguousarray(pixels[view])), SETTINGS)
    assert np.array_equal(normalise(GreyImage(pixels[view]), SETTINGS), expected)
    assert np.array_equal(
        normalise(GreyImage(np.asfortranarray(pixels)), SETTINGS), normalise(GreyImage(pixels), SETTINGS)
    )


def test_the_same_strip_in_every_mode_and_file_is_the_same_to_a_network(
    strips_folder: Path, encode: Callable[..., bytes]
) -> None:
    content = (strips_folder / "mnist_7294158.png").read_bytes()
    expected = normalise(read_image(content), SETTINGS)
    grey = Image.fromarray(read_image(content).pixels)
    for mode in ("L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "F"):
        assert np.array_equal(normalise(to_grey(grey.convert(mode)), SETTINGS), expected), mode
    deep = Image.fromarray(np.asarray(grey).astype(np.uint16) * 257)
    for image, file_format, options in (
        (grey, "TIFF", {}),
        (grey, "BMP", {}),
        (grey, "GIF", {}),
        (grey, "PPM", {}),
        (grey, "WEBP", {"lossless": True}),
        (deep, "PNG", {}),
        (deep, "TIFF", {}),
        (deep, "PPM", {}),
    ):
        pixels = normalise(read_image(encode(image, file_format, **options)), SETTINGS)
        assert np.array_equal(pixels, expected), (image.mode, file_format)


# Settings


@pytest.mark.parametrize(
    "fields", [{"height": 0}, {"padding": -1}, {"max_width": 0}, {"polarity": "both"}, {"colour": True}]
)
def test_settings_that_make_no_sense_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(fields))):
        ImageSettings(**fields)


def test_settings_are_frozen_and_survive_json() -> None:
    settings = ImageSettings(height=32, polarity="light_on_dark")
    with pytest.raises(ValidationError, match="frozen"):
        settings.height = 48
    assert ImageSettings.model_validate_json(settings.model_dump_json()) == settings
