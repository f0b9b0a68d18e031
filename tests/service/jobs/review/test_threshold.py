"""Where the line is drawn between readings that need a look and such that don't."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphline.service.jobs.review import Basis, find_basis
from glyphline.service.jobs.review.threshold import needed_references

MakeRow = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(("accuracy", "needed"), [(0.9, 30), (0.99, 300), (0.999, 3000)])
def test_it_takes_more_references_to_be_surer(accuracy: float, needed: int) -> None:
    assert needed_references(accuracy) == needed


def test_without_enough_references_there_is_no_threshold(row: MakeRow) -> None:
    rows = [row(str(number), "1", 0.9, reference="1") for number in range(29)]
    basis = find_basis([*rows, row("a", "1"), row("b", None, reference="1")], 0.9)
    assert (basis.threshold, basis.references, basis.needed) == (None, 29, 30)
    assert "30 rows with references, and there are 29" in basis.sentence(5)
    assert basis.sentence(5).startswith("The 5 least sure readings: the confidence")


def test_sentences_read_well_for_one_and_none() -> None:
    assert Basis(None, 0.99, 1, 300).sentence(1) == (
        "The least sure reading: the confidence from which on 99 % are right is not known. To find it takes 300 rows"
        " with references, and there is 1."
    )
    told = Basis(None, 0.99, 0, 300).sentence(0)
    assert told.startswith("No reading for its confidence alone: ")
    assert told.endswith("and there are none.")
    assert ", 1 lies at it or above" in Basis(0.5, 0.99, 300, 300, 1, 1).sentence(0)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=30, max_size=60))
def test_what_lies_above_it_is_as_right_as_asked(pairs: list[tuple[float, bool]]) -> None:
    rows = [
        {"id": str(number), "text": "é", "confidence": confidence, "reference": "e\u0301" if right else "e"}
        for number, (confidence, right) in enumerate(pairs)
    ]
    basis = find_basis(rows, 0.9)
    assert basis.threshold is not None
    above = [right for confidence, right in pairs if confidence >= basis.threshold]
    assert (basis.accepted, basis.right) == (len(above), sum(above))
    assert len(above) - sum(above) <= 0.1 * len(above) + 1e-6
    assert math.isinf(basis.threshold) == (not above)
    assert ("no confidence" in basis.sentence(0)) == (not above)


def test_a_threshold_that_is_given_is_told() -> None:
    assert Basis(0.93).sentence(1) == "Readings with a confidence below 0.93, as asked."
