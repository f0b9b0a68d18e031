"""Chooses the rows of a job that are most likely wrong."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from glyphline.service.jobs.review.texts import same_text

__all__ = ["MOST_ERRORS", "REASONS", "Chosen", "Reason", "Selection", "select_rows"]

Row = Mapping[str, Any]
Reason = Literal["reference", "disagreement", "confidence", "error"]
REASONS: tuple[Reason, ...] = ("reference", "disagreement", "confidence", "error")

MOST_ERRORS = 200
"""Rows without a reading that are shown: of thousands the first say what is wrong."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A row to look at.

    Attributes:
        row: As the job wrote it.
        reason: Why it was chosen: its text differs from the reference that it has, from that of another job, its
            confidence is low, or there is none.
        other: The other job's row, if there is one and it has a text.
    """

    row: Row
    reason: Reason
    other: Row | None = None


@dataclass(slots=True)
class Selection:
    """What was chosen of a job.

    Attributes:
        chosen: Rows to look at, first those of which it is known that one text is wrong, the least sure first; at last
            those without a reading.
        found: How many rows there are for each reason, those among them that are not shown.
        rows: All rows of the job.
    """

    chosen: list[Chosen] = field(default_factory=list)
    found: Counter[Reason] = field(default_factory=Counter)
    rows: int = 0

    @property
    def shown(self) -> Counter[Reason]:
        """How many rows are shown for each reason."""
        return Counter(each.reason for each in self.chosen)


def select_rows(pairs: Iterable[tuple[Row, Row | None]], threshold: float | None, limit: int) -> Selection:
    """Chooses rows; holds no more of them than are chosen.

    A row whose text is that of its reference is right, and not chosen whatever its confidence.

    Args:
        pairs: All rows of a job, each with the other job's row of the same picture.
        threshold: Readings below it are doubtful; None for all of them, of which the least sure are chosen.
        limit: Greatest number of readings that are chosen.
    """
    selection = Selection()
    errors: list[Chosen] = []
    readings = heapq.nsmallest(limit, _doubtful(pairs, threshold, selection, errors), key=_rank)
    selection.chosen = readings + errors
    return selection


def _doubtful(
    pairs: Iterable[tuple[Row, Row | None]], threshold: float | None, selection: Selection, errors: list[Chosen]
) -> Iterator[Chosen]:
    """Yields readings that may be wrong; rows without a reading are put aside, and all are counted."""
    for row, counterpart in pairs:
        selection.rows += 1
        other = None if counterpart is None or counterpart["text"] is None else counterpart
        reason = _reason(row, other, threshold)
        if reason is None:
            continue
        selection.found[reason] += 1
        if reason != "error":
            yield Chosen(row, reason, other)
        elif len(errors) < MOST_ERRORS:
            errors.append(Chosen(row, reason, other))


def _reason(row: Row, other: Row | None, threshold: float | None) -> Reason | None:
    if row["text"] is None:
        return "error"
    reference = row.get("reference")
    if reference is not None:
        return None if same_text(row["text"], reference) else "reference"
    if other is not None and not same_text(row["text"], other["text"]):
        return "disagreement"
    return "confidence" if threshold is None or row["confidence"] < threshold else None


def _rank(chosen: Chosen) -> tuple[bool, float]:
    return chosen.reason == "confidence", chosen.row["confidence"]
