from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.training.augment import Wear
from glyphline.training.datasets.characters import CharacterSet, read_folder, read_npz
from glyphline.training.datasets.compose import MARKS, ComposedReadings, ComposedStrips, draw_mark, join


@given(
    widths=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    gap=st.integers(-5, 5),
    shift=st.lists(st.integers(-3, 3), min_size=6, max_size=6),
)
def test_join_keeps_every_piece_whole(widths: list[int], gap: int, shift: list[int]) -> None:
    pieces = [np.full((7, width), 10 + index, np.uint8) for index, width in enumerate(widths)]
    gaps, shifts = np.full(len(pieces), gap), np.array(shift[: len(pieces)])
    strip = join(pieces, gaps, shifts)
    last = 10 + len(pieces) - 1
    assert (strip == last).sum() == pieces[-1].size, "the last piece is the strongest, so nothing covers it"
    assert strip.shape[0] == 7 + shifts.max() - min(0, shifts.min())
    if gap >= 0:
        assert strip.shape[1] == sum(widths) + gap * (len(widths) - 1)
        assert (strip > 0).sum() == sum(piece.size for piece in pieces)


@pytest.mark.parametrize("mark", MARKS)
def test_marks_have_ink_and_room(mark: str) -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        ink = draw_mark(mark, 24, random)
        assert 24 * 1.3 <= ink.shape[0] + 1 <= 24 * 1.6 + 2 if mark == "/" else ink.shape[0] == 24
        assert ink.max() > 100
        assert (ink > 0).mean() < 0.6


def test_a_strip_is_a_function_of_its_seed(data_root: Path) -> None:
    strips = ComposedStrips(read_npz(data_root / "characters"))
    first, again = (strips.draw(np.random.default_rng(5)) for _ in range(2))
    other = strips.draw(np.random.default_rng(6))
    assert first.text == again.text
    assert np.array_equal(first.pixels, again.pixels)
    assert first.pixels.shape != other.pixels.shape or not np.array_equal(first.pixels, other.pixels)


def test_strips_keep_to_one_writer_where_asked() -> None:
    images = [np.full((20, 12), 50 + 10 * (index % 20), np.uint8) for index in range(400)]
    labels = [str(index // 20 % 10) for index in range(400)]
    writers = np.arange(400) % 20
    strips = ComposedStrips(CharacterSet("shades", images, labels, writers), one_writer=1.0, marks=0)
    for seed in range(20):
        ink = strips.draw_ink("13579", np.random.default_rng(seed))
        shades = np.unique(ink[ink > 0])
        assert shades.max() - shades.min() <= 1, "each writer writes in one shade"


def test_each_character_is_distorted_by_itself(data_root: Path) -> None:
    characters = read_npz(data_root / "characters")
    straight = ComposedStrips(characters, marks=0, distortion=0.0)
    bent = ComposedStrips(characters, marks=0, distortion=0.7)

    def shapes(strips: ComposedStrips) -> int:
        """Different drawings of one image of one character."""
        image = characters.images[0]
        random = np.random.default_rng(2)
        sizes = [int(random.integers(0, 1 << 30)) for _ in range(12)]
        return len({strips._piece(image, 28, True, np.random.default_rng(seed)).tobytes() for seed in sizes})

    assert shapes(bent) >= shapes(straight) > 1
    plain = straight._piece(characters.images[0], 28, False, np.random.default_rng(5))
    other = bent._piece(characters.images[0], 28, False, np.random.default_rng(5))
    assert other.shape[0] > plain.shape[0], "room for what slants and tilts"
    assert abs(float(other.sum()) / float(plain.sum()) - 1) < 0.3, "as much ink"


def test_readings_come_from_one_meter(data_root: Path) -> None:
    cells = read_folder(data_root / "cells")
    plain = Wear(slant=0, rotation=0, elastic=0, lines=0, inverted=0)
    readings = ComposedReadings(cells, longest=6, wear=plain)
    for seed in range(30):
        sample = readings.draw(np.random.default_rng(seed))
        assert sample.text.isdigit()
        assert len(sample.text) <= 6
        assert sample.pixels.dtype == np.uint8
