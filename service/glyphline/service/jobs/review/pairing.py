"""Finds for each row of a job the row of another job that read the same picture."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Pairing", "pair_rows"]

Row = Mapping[str, Any]


@dataclass(slots=True)
class Pairing:
    """Two jobs' rows side by side.

    Attributes:
        first: Rows of the job that is looked at.
        second: Rows of the other one; None if there is none.
        alone: Rows of the first that the second lacks, counted while they are gone through.
        matched: Rows that both have, likewise.
    """

    first: Iterable[Row]
    second: Iterable[Row] | None = None
    alone: int = 0
    matched: int = 0

    def __iter__(self) -> Iterator[tuple[Row, Row | None]]:
        """Yields each row of the first job, with its counterpart."""
        if self.second is None:
            yield from ((row, None) for row in self.first)
            return
        for row, other in pair_rows(self.first, self.second):
            self.matched += other is not None
            self.alone += other is None
            yield row, other


def pair_rows(first: Iterable[Row], second: Iterable[Row]) -> Iterator[tuple[Row, Row | None]]:
    """Pairs rows by their ids.

    Jobs of the same inputs mostly have their rows in the same order. Both are gone through side by side, and what is
    held are only the rows whose counterparts have not come yet.

    Args:
        first: All of its rows are yielded: those with a counterpart as soon as that has come, the others at the end.
        second: The other job's.
    """
    held: dict[str, Row] = {}
    waiting: dict[str, Row] = {}
    for row, other in itertools.zip_longest(first, second):
        if other is not None:
            waiting[other["id"]] = other
        if row is not None:
            held[row["id"]] = row
        for name in dict.fromkeys(each["id"] for each in (row, other) if each is not None):
            if name in held and name in waiting:
                yield held.pop(name), waiting.pop(name)
    yield from ((row, None) for row in held.values())
