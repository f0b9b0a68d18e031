"""How strips are cut into runs."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.models.runs import RUN_COLUMNS, plan_runs


def cost(widths: list[int], runs: list[tuple[int, int]], multiple: int) -> int:
    """What runs cost, by the rule."""
    padded = [-(-widths[end - 1] // multiple) * multiple * (end - begin) for begin, end in runs]
    return sum(padded) + RUN_COLUMNS * len(runs)


def every_way(count: int) -> list[list[tuple[int, int]]]:
    """Returns every way to cut so many strips."""
    ways = []
    for cuts in range(1 << (count - 1)):
        edges = [0, *(place + 1 for place in range(count - 1) if cuts >> place & 1), count]
        ways.append(list(pairwise(edges)))
    return ways


@pytest.mark.parametrize(
    ("widths", "runs"),
    [
        ([], []),
        ([60], [(0, 1)]),
        ([60, 60, 60], [(0, 3)]),
        ([60, 64, 70], [(0, 3)]),  # a little padding is cheaper than another run
        ([60, 60, 60, 400], [(0, 3), (3, 4)]),  # much padding is not
        ([60] * 10 + [68] * 10, [(0, 10), (10, 20)]),  # nor is a little padding of many
    ],
)
def test_strips_share_a_run_where_that_costs_less(widths: list[int], runs: list[tuple[int, int]]) -> None:
    assert plan_runs(widths, max_batch=32, max_columns=8192, multiple=4) == runs


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=9), st.integers(1, 9), st.sampled_from([1, 4, 12]))
def test_no_other_way_costs_less(widths: list[int], max_batch: int, multiple: int) -> None:
    widths.sort()
    runs = plan_runs(widths, max_batch=max_batch, max_columns=4096, multiple=multiple)
    allowed = [
        way
        for way in every_way(len(widths))
        if all(
            end - begin == 1
            or (end - begin <= max_batch and (end - begin) * (-(-widths[end - 1] // multiple) * multiple) <= 4096)
            for begin, end in way
        )
    ]
    assert runs in allowed
    assert cost(widths, runs, multiple) == min(cost(widths, way, multiple) for way in allowed)
