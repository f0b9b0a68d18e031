from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.training import augment
from glyphline.training.augment import Wear


@given(height=st.integers(4, 60), width=st.integers(2, 200), seed=st.integers(0, 10_000))
def test_any_drawing_becomes_a_picture(height: int, width: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    ink = np.zeros((height, width), np.uint8)
    ink[1:-1, 1:] = random.integers(0, 256)
    worst = Wear(lines=1, inverted=0.5, tight=0.5, loose=3)
    ink = augment.warp(ink, random, worst)
    ink = augment.with_margins(augment.thicken(ink, random), random, worst)
    ink = augment.with_neighbours(ink, random)
    picture = augment.photograph(ink, random, worst)
    assert picture.dtype == np.uint8
    assert picture.shape == ink.shape
    again = augment.rephotograph(picture, random, worst)
    assert again.dtype == np.uint8
    assert min(again.shape) >= 1


def test_warping_keeps_the_ink() -> None:
    ink = np.zeros((40, 200), np.uint8)
    ink[10:30, 20:180] = 255
    for seed in range(20):
        warped = augment.warp(ink, np.random.default_rng(seed), Wear())
        assert float(warped.sum()) == pytest.approx(float(ink.sum()), rel=0.15)


def test_margins_are_new_and_hold_all_the_ink() -> None:
    ink = np.zeros((60, 90), np.uint8)
    ink[20:40, 30:50] = 255
    tight = augment.with_margins(ink, np.random.default_rng(0), Wear(tight=1))
    assert tight.sum() == ink.sum()
    assert tight.shape[0] <= 24
    assert tight.shape[1] <= 24
    loose = augment.with_margins(ink, np.random.default_rng(0), Wear(tight=0, loose=2))
    assert loose.sum() == ink.sum()


def test_inversion_makes_light_ink() -> None:
    ink = np.zeros((30, 60), np.uint8)
    ink[10:20, 10:50] = 255
    calm = {"lines": 0.0}
    for seed in range(10):
        dark = augment.photograph(ink, np.random.default_rng(seed), Wear(inverted=0, **calm))
        light = augment.photograph(ink, np.random.default_rng(seed), Wear(inverted=1, **calm))
        assert dark[12:18, 15:45].mean() < dark[:6].mean()
        assert light[12:18, 15:45].mean() > light[:6].mean()
