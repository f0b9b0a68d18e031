"""Counts that can be kept on the disk and added up: what a job or a part of it came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from glyphline.models.error_rate import EditCounts, edit_counts, wilson_interval
from glyphline.service.jobs.rows import Outcome, RowError

__all__ = ["Tally"]

_SEED = 0
_RESAMPLES = 1000
_LEVEL = 0.95
_EDITS = (
    "insertions",
    "deletions",
    "substitutions",
    "reference_characters",
    "exact",
    "word_edits",
    "reference_words",
)


@dataclass(slots=True)
class Tally:
    """Counts of rows. Its size does not grow with their number.

    An image that could not be read counts as read empty in the error rates: leaving it out would flatter them.

    Attributes:
        images: Rows.
        blank: Images that were read as empty.
        truncated: Readings that were cut at the longest text.
        confidence: Sum over all readings.
        seconds: Time that was spent.
        errors: How often each error code came.
        edits: How often each outcome of a comparison with the reference came. Lines are short, so there are few.
    """

    images: int = 0
    blank: int = 0
    truncated: int = 0
    confidence: float = 0.0
    seconds: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)
    edits: Counter[EditCounts] = field(default_factory=Counter)

    def add(self, outcome: Outcome, reference: str | None) -> None:
        """Counts a row."""
        self.images += 1
        text = ""
        if isinstance(outcome, RowError):
            self.errors[outcome.code] += 1
        else:
            text = outcome.text
            self.blank += text == ""
            self.truncated += outcome.truncated
            self.confidence += outcome.confidence
        if reference is not None:
            self.edits[edit_counts(reference, text)] += 1

    def merge(self, other: Tally) -> None:
        """Adds another's counts."""
        self.images += other.images
        self.blank += other.blank
        self.truncated += other.truncated
        self.confidence += other.confidence
        self.seconds += other.seconds
        self.errors.update(other.errors)
        self.edits.update(other.edits)

    @property
    def failed(self) -> int:
        """Images without a reading."""
        return self.errors.total()

    @property
    def referenced(self) -> int:
        """Rows that had a reference."""
        return self.edits.total()

    @property
    def cer(self) -> float | None:
        """Character error rate; None without references."""
        if not self.edits:
            return None
        return self._sum("edits") / max(self._sum("reference_characters"), 1)

    def evaluation(self) -> dict[str, Any] | None:
        """Tells the error rates with their intervals; None without references."""
        cer = self.cer
        if cer is None:
            return None
        exact, n = self._sum("exact"), self.referenced
        return {
            "images": n,
            "exact": round(exact / n, 6),
            "exact_interval": [round(bound, 6) for bound in wilson_interval(exact, n, level=_LEVEL)],
            "cer": round(cer, 6),
            "cer_interval": [round(bound, 6) for bound in self._cer_interval()],
        } | {name: self._sum(name) for name in _EDITS[:4]}

    def as_json(self) -> dict[str, Any]:
        """Builds what `from_json` reads."""
        edits = sorted([*(int(getattr(each, name)) for name in _EDITS), count] for each, count in self.edits.items())
        return {
            "images": self.images,
            "blank": self.blank,
            "truncated": self.truncated,
            "confidence": self.confidence,
            "seconds": round(self.seconds, 3),
            "errors": dict(self.errors),
            "edits": edits,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Reads what `as_json` built."""
        edits: Counter[EditCounts] = Counter()
        for *numbers, count in values["edits"]:
            counts = dict(zip(_EDITS, numbers, strict=True))
            edits[EditCounts(**counts | {"exact": bool(counts["exact"])})] += count
        plain = {name: values[name] for name in ("images", "blank", "truncated", "confidence", "seconds")}
        return cls(**plain, errors=Counter(values["errors"]), edits=edits)

    def _sum(self, name: str) -> int:
        return sum(int(getattr(each, name)) * count for each, count in self.edits.items())

    def _cer_interval(self) -> tuple[float, float]:
        """Percentile bootstrap over lines, which are drawn by kind: how often each kind is drawn is multinomial."""
        kinds = sorted(self.edits.items(), key=lambda pair: tuple(getattr(pair[0], name) for name in _EDITS))
        edits = np.array([each.edits for each, _ in kinds], dtype=np.int64)
        characters = np.array([each.reference_characters for each, _ in kinds], dtype=np.int64)
        counts = np.array([count for _, count in kinds], dtype=np.int64)
        n = int(counts.sum())
        drawn = np.random.default_rng(_SEED).multinomial(n, counts / n, size=_RESAMPLES)
        rates = (drawn @ edits) / np.maximum(drawn @ characters, 1)
        lower, upper = np.quantile(rates, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
        return float(lower), float(upper)
