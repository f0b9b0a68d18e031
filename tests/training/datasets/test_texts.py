from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from glyphline.training.datasets.texts import random_digits, random_length, random_text

SYMBOLS = set("0123456789.,:/-+ ")


@given(seed=st.integers(0, 10_000), longest=st.integers(1, 40), marks=st.floats(0, 1), spaces=st.booleans())
def test_texts_keep_to_the_alphabet_and_the_length(seed: int, longest: int, marks: float, spaces: bool) -> None:
    text = random_text(np.random.default_rng(seed), longest, marks=marks, spaces=spaces)
    assert len(text) <= longest
    assert set(text) <= SYMBOLS
    assert text == text.strip(), "a space at an end cannot be seen"
    assert "  " not in text
    assert spaces or " " not in text


def test_without_marks_there_are_only_digits() -> None:
    random = np.random.default_rng(1)
    assert all(random_text(random, 12, marks=0).isdigit() for _ in range(500))


def test_some_strings_have_runs_of_one_digit() -> None:
    random = np.random.default_rng(1)
    strings = [random_digits(random, 8) for _ in range(400)]
    assert 20 < sum(any(d * 4 in s for d in "0123456789") for s in strings) < 200


def test_short_lengths_are_commoner() -> None:
    random = np.random.default_rng(1)
    lengths = [random_length(random, 30) for _ in range(3000)]
    assert min(lengths) == 1
    assert max(lengths) == 30
    assert 0.4 < np.mean(np.array(lengths) <= 10) < 0.6
