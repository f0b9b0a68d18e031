"""Rows of two jobs find each other."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from glyphline.service.jobs.review import Pairing, pair_rows

names = st.lists(st.integers(0, 20).map(str), unique=True, max_size=15)


def rows(ids: list[str]) -> list[dict[str, Any]]:
    return [{"id": name} for name in ids]


@given(names, names)
def test_every_row_comes_once_with_its_counterpart(first: list[str], second: list[str]) -> None:
    pairs = [(row["id"], other and other["id"]) for row, other in pair_rows(rows(first), rows(second))]
    assert sorted(name for name, _ in pairs) == sorted(first)
    assert dict(pairs) == {name: name if name in second else None for name in first}
    assert [name for name, other in pairs if other is None] == [name for name in first if name not in second]


def test_they_are_counted() -> None:
    pairing = Pairing(rows(["a", "b", "c"]), rows(["c", "a", "d"]))
    assert len(list(pairing)) == 3
    assert (pairing.matched, pairing.alone) == (2, 1)
    assert list(Pairing(rows(["a"]))) == [({"id": "a"}, None)]
