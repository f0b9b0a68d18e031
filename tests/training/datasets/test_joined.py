from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.models.alphabet import Alphabet
from glyphline.training.datasets.joined import JoinedStrips, ground_and_span, set_side_by_side
from glyphline.training.datasets.samples import Grey, Sample


def picture(height: int, width: int, *, paper: int = 230, ink: int = 30) -> Grey:
    pixels = np.full((height, width), paper, np.uint8)
    pixels[height // 4 : -height // 4, 2 : max(3, width // 4)] = ink
    return pixels


@dataclass(frozen=True)
class Fixed:
    """Draws strips of one text."""

    text: str

    def draw(self, random: np.random.Generator) -> Sample:
        return Sample(picture(int(random.integers(20, 60)), int(random.integers(20, 90))), self.text, "fixed")


@given(
    heights=st.tuples(st.integers(4, 90), st.integers(4, 90)),
    widths=st.tuples(st.integers(1, 200), st.integers(1, 200)),
    gap=st.integers(1, 50),
    seed=st.integers(0, 1000),
)
def test_two_pictures_become_one_of_the_first_ones_height(
    heights: tuple[int, int], widths: tuple[int, int], gap: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    first, second = (random.integers(0, 256, size, np.uint8) for size in zip(heights, widths, strict=True))
    joined = set_side_by_side(first, second, gap, random)
    assert joined.dtype == np.uint8
    assert joined.shape == (heights[0], widths[0] + gap + max(1, round(widths[1] * heights[0] / heights[1])))
    assert np.array_equal(joined[:, : widths[0]], first)


@pytest.mark.parametrize(("paper", "ink"), [(230, 30), (20, 200)])
def test_polarity_and_paper_are_the_first_ones(paper: int, ink: int) -> None:
    first = picture(40, 80)
    joined = set_side_by_side(first, picture(30, 90, paper=paper, ink=ink), 20, np.random.default_rng(1))
    ground, span = ground_and_span(joined[:, 110:])
    assert abs(ground - 230) < 30
    assert span < -100, "dark ink"
    assert abs(joined[:, 80:100].mean() - 230) < 20, "paper between them"


@pytest.mark.parametrize(
    ("symbols", "text", "expected"),
    [
        ("ab ", "ab", "ab ab"),
        ("ab", "ab", "abab"),
        ("0123456789 ", "17", "1717"),
        ("ab ", "", ""),
    ],
)
def test_texts_are_joined_as_the_alphabet_allows(symbols: str, text: str, expected: str) -> None:
    strips = JoinedStrips(Fixed(text), 1.0, Alphabet(tuple(symbols)))
    assert strips.draw(np.random.default_rng(0)).text == expected


def test_the_share_is_kept_and_a_seed_gives_one_strip() -> None:
    strips = JoinedStrips(Fixed("a"), 0.3)
    drawn = [strips.draw(np.random.default_rng(seed)).text for seed in range(400)]
    assert 80 < drawn.count("a a") < 160
    first, again = (strips.draw(np.random.default_rng(4)).pixels for _ in range(2))
    assert np.array_equal(first, again)
