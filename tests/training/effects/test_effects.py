from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphline.training.datasets.dice import Dice
from glyphline.training.datasets.lettered import take_picture
from glyphline.training.datasets.samples import Grey, Ink
from glyphline.training.effects import STYLES, camera, ground, inking
from glyphline.training.effects.geometry import crop, reshape

SAME_SIZE: dict[str, Callable[[Ink, Dice], Ink]] = {
    "reweigh": inking.reweigh,
    "press": inking.press,
    "dots": inking.as_dots,
    "fade": inking.fade,
    "roughen": inking.roughen,
    "swell": lambda ink, dice: inking.swell(ink, dice.whole(1, 3)),
    "moved": lambda ink, dice: inking.moved(ink, dice.whole(-3, 4), dice.whole(-3, 4)),
    "defocus": lambda ink, dice: camera.defocus(ink, 0.5, dice),
    "shake": camera.shake,
    "jpeg": lambda ink, dice: camera.as_jpeg(ink, dice.whole(20, 90)),
}
sizes = st.tuples(st.integers(6, 70), st.integers(4, 300))


def bars(height: int, width: int) -> Ink:
    """Upright strokes, about as thick as those of letters."""
    ink = np.zeros((height, width), np.uint8)
    stroke = max(2, height // 10)
    for left in range(1, width - stroke, 4 * stroke):
        ink[height // 5 : -max(1, height // 5), left : left + stroke] = 255
    return ink


@settings(max_examples=60)
@given(size=sizes, seed=st.integers(0, 1000), name=st.sampled_from(sorted(SAME_SIZE)))
def test_what_befalls_ink_or_picture_keeps_its_size(size: tuple[int, int], seed: int, name: str) -> None:
    ink = bars(*size)
    before = ink.copy()
    first, again = (SAME_SIZE[name](ink, Dice(np.random.default_rng(seed))) for _ in "ab")
    assert first.shape == ink.shape
    assert first.dtype == np.uint8
    assert np.array_equal(first, again), "the same numbers, the same effect"
    assert np.array_equal(ink, before), "what was given is as it was"


@settings(max_examples=60)
@given(
    size=sizes, seed=st.integers(0, 1000), style=st.sampled_from(sorted(STYLES)), scale=st.sampled_from([0.5, 1.0, 1.4])
)
def test_any_drawing_becomes_a_picture_in_any_style(size: tuple[int, int], seed: int, style: str, scale: float) -> None:
    look = STYLES[style]  # type: ignore[index]
    dice = Dice(np.random.default_rng(seed))
    ink = reshape(bars(*size), scale, dice, look)
    assert ink.dtype == np.uint8
    picture = take_picture(ink, dice, look)
    assert picture.dtype == np.uint8
    assert min(picture.shape) >= 2


def test_reshaping_keeps_the_ink() -> None:
    ink = bars(40, 200)
    for style in STYLES.values():
        for seed in range(10):
            shaped = reshape(ink, 1.0, Dice(np.random.default_rng(seed)), style)
            stretch = 0.4 if style.squeeze > 0.1 else 0.25
            assert float(shaped.sum()) == pytest.approx(float(ink.sum()), rel=2 * stretch)


def test_crops_are_from_tight_to_loose_and_hold_the_text() -> None:
    ink = np.pad(bars(30, 90), 20)
    heights = {crop(ink, Dice(np.random.default_rng(seed)), STYLES["print"]).shape[0] for seed in range(60)}
    assert min(heights) < 22 < max(heights)


@pytest.mark.parametrize("effect", [ground.slope_of_light, ground.clutter])
def test_grounds_are_small_numbers(effect: Callable[[int, int, Dice], ground.Field]) -> None:
    for seed in range(40):
        field = effect(30, 120, Dice(np.random.default_rng(seed)))
        assert field.shape == (30, 120)
        assert field.dtype == np.float32
        assert float(np.abs(field).max()) <= 1.5


def test_tiles_are_the_same_everywhere_and_larger_pieces_repeat_them() -> None:
    tiles = ground.texture_tiles()
    assert len(tiles) > 30
    assert all(tile.shape == ground.noise_tile().shape and abs(float(tile.mean())) < 0.35 for tile in tiles)
    piece = ground.cut_tile(ground.noise_tile(), 300, 1500, Dice(np.random.default_rng(1)))
    assert piece.shape == (300, 1500)


def test_low_resolution_has_few_rows() -> None:
    small = camera.shrink(bars(40, 200), 10)
    assert small.shape == (10, 50)
    assert camera.enlarge(small, 40, Dice(np.random.default_rng(1))).shape == (40, 200)


def test_far_out_of_focus_is_further_than_out_of_focus() -> None:
    ink = bars(40, 200)
    slopes = [
        np.mean(
            [
                np.abs(np.diff(camera.defocus(ink, share, Dice(np.random.default_rng(n))).astype(int))).sum()
                for n in range(30)
            ]
        )
        for share in (0.0, 1.0)
    ]
    assert slopes[1] < 0.95 * slopes[0]


def test_reliefs_are_seen_by_their_edges() -> None:
    """Faces of letters stay near the grey of their ground; beside them is what is lit and what is in shade."""
    ink = bars(40, 300)
    look = replace(STYLES["scene"], relief=1.0, clean=0.0, texture=0.0, gradient=0.0, clutter=0.0, blur=0.0, noise=0.0)
    look = replace(look, low_resolution=0.0, motion=0.0, jpeg=0.0, outline=0.0, fill=0.0, two_tone=0.0, weight=0.0)
    look = replace(look, wear=replace(look.wear, lines=0.0), rough=0.0, cropped=0.0, neighbours=0.0)
    edges = 0
    for seed in range(40):
        values, counts = np.unique(take_picture(ink, Dice(np.random.default_rng(seed)), look), return_counts=True)
        paper = int(values[counts.argmax()])
        edges += int(values.min()) < paper - 20 and int(values.max()) > paper + 20
    assert edges > 20, "on most there is something darker than the ground and something lighter"


def with_ink(ink: Ink, paper: Grey | int, pen: int) -> Grey:
    return np.where(ink > 128, pen, paper).astype(np.uint8)


def test_text_that_cannot_be_seen_is_found_out() -> None:
    ink = bars(40, 300)
    assert camera.is_visible(with_ink(ink, 230, 20), ink)
    assert camera.is_visible(with_ink(ink, 20, 60), ink)
    assert not camera.is_visible(with_ink(ink, 128, 136), ink), "nearly one grey"
    noise = np.random.default_rng(1).integers(0, 256, ink.shape).astype(np.uint8)
    assert not camera.is_visible(noise, ink)
    half = with_ink(ink, 230, 20)
    half[:, 150:] = 230
    assert not camera.is_visible(half, ink), "half of it is gone"
    fading = np.tile(np.linspace(0, 255, 300), (40, 1))
    assert not camera.is_visible(with_ink(ink, fading.astype(np.uint8), 128), ink), "ink and ground cross"


def test_pictures_can_be_seen() -> None:
    """A style's ink survives: among its strips there is none of a single grey."""
    ink = bars(36, 200)
    for look in STYLES.values():
        for seed in range(60):
            picture = take_picture(ink, Dice(np.random.default_rng(seed)), look)
            assert int(picture.max()) - int(picture.min()) >= 18
