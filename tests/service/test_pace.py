"""How long batches are expected to take."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.service.pace import Pace


def test_nothing_is_expected_before_anything_was_seen() -> None:
    assert Pace().seconds(100) == 0.0
    assert Pace().longest == 0.0


def test_while_batches_are_of_one_size_larger_ones_are_tried() -> None:
    pace = Pace()
    for _ in range(5):
        pace.observe(100, 1.0)
    assert pace.seconds(50) == pytest.approx(1.0)
    assert pace.seconds(200) == pytest.approx(1.0)
    assert pace.seconds(400) == pytest.approx(2.0)


def test_batches_of_several_sizes_tell_what_is_fixed_and_what_grows() -> None:
    pace, chance = Pace(), random.Random(0)
    for _ in range(50):
        work = chance.randint(1, 100)
        pace.observe(work, 0.05 + 0.01 * work)
    assert pace.seconds(1) == pytest.approx(0.06)
    assert pace.seconds(200) == pytest.approx(2.05)


def test_what_changes_is_learnt_anew() -> None:
    pace = Pace()
    for work in (10, 20) * 50:
        pace.observe(work, work)
    for work in (10, 20) * 50:
        pace.observe(work, work / 10)
    assert pace.seconds(10) == pytest.approx(1.0, rel=0.01)


def test_the_longest_is_forgotten_slowly() -> None:
    pace = Pace()
    for seconds in (1.0, 5.0, 1.0):
        pace.observe(1, seconds)
    assert 4.0 < pace.longest < 5.0
    for _ in range(50):
        pace.observe(1, 1.0)
    assert pace.longest == pytest.approx(1.0, abs=0.01)


@given(batches=st.lists(st.tuples(st.integers(1, 10**6), st.floats(0.0, 1000.0)), min_size=1, max_size=30))
def test_expectations_are_never_negative_and_grow_with_the_work(batches: list[tuple[int, float]]) -> None:
    pace = Pace()
    for work, seconds in batches:
        pace.observe(work, seconds)
    expected = [pace.seconds(work) for work in (0, 1, 1000, 10**6)]
    assert expected == sorted(expected)
    assert expected[0] >= -1e-6
