"""What a whole job came to: counts, speed and, where the truth is known, error rates."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from glyphline.models.decoding import Reading
from glyphline.models.error_rate import ErrorRate, edit_counts
from glyphline.service.jobs.rows import Row, RowError


@dataclass(slots=True)
class Summary:
    """Accumulates the rows of a job.

    An image that could not be read counts as read empty in the error rates: leaving it out would flatter them.

    Attributes:
        images: Rows so far.
        blank: Images that were read as empty.
        truncated: Readings that were cut at the longest text.
        errors: How often each error code came.
        error_rate: Edits against the references.
    """

    images: int = 0
    blank: int = 0
    truncated: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    error_rate: ErrorRate = field(default_factory=ErrorRate)
    _confidence: float = 0.0
    _started: float = field(default_factory=time.perf_counter)

    def add(self, row: Row) -> None:
        """Counts a row."""
        self.images += 1
        text = ""
        if isinstance(row.outcome, RowError):
            self.errors[row.outcome.code] += 1
        else:
            self._add_reading(row.outcome)
            text = row.outcome.text
        if row.reference is not None:
            self.error_rate.add(edit_counts(row.reference, text))

    def _add_reading(self, reading: Reading) -> None:
        self.blank += reading.text == ""
        self.truncated += reading.truncated
        self._confidence += reading.confidence

    @property
    def failed(self) -> int:
        """Images without a reading."""
        return self.errors.total()

    @property
    def seconds(self) -> float:
        """Time since the job began."""
        return time.perf_counter() - self._started

    @property
    def mean_confidence(self) -> float | None:
        """Mean over all readings, None before the first."""
        read = self.images - self.failed
        return self._confidence / read if read else None

    def as_json(self) -> dict[str, Any]:
        """Builds the summary's JSON object."""
        seconds = self.seconds
        return {
            "images": self.images,
            "read": self.images - self.failed,
            "failed": self.failed,
            "errors": dict(sorted(self.errors.items())),
            "blank": self.blank,
            "truncated": self.truncated,
            "mean_confidence": None if self.mean_confidence is None else round(self.mean_confidence, 6),
            "seconds": round(seconds, 3),
            "images_per_second": round(self.images / seconds, 2) if seconds else None,
            "evaluation": self._evaluation(),
        }

    def as_text(self) -> list[str]:
        """Builds the lines that tell people the same."""
        counts = self.as_json()
        failed = ", ".join(f"{count:,} {code}" for code, count in counts["errors"].items())
        lines = [
            f"{counts['read']:,} of {counts['images']:,} images read in {counts['seconds']:,.1f} s"
            f" ({counts['images_per_second']:,.1f} images/s)" + (f"; failed: {failed}" if failed else "")
        ]
        if counts["read"]:
            lines.append(
                f"mean confidence {counts['mean_confidence']:.1%}, {self.blank:,} blank, {self.truncated:,} cut short"
            )
        if scores := counts["evaluation"]:
            (low, high), (cer_low, cer_high) = scores["exact_interval"], scores["cer_interval"]
            lines.append(
                f"against {scores['images']:,} references: exact {scores['exact']:.2%} ({low:.2%} to {high:.2%}),"
                f" CER {scores['cer']:.2%} ({cer_low:.2%} to {cer_high:.2%})"
            )
        return lines

    def _evaluation(self) -> dict[str, Any] | None:
        rate = self.error_rate
        if not rate.n:
            return None
        return {
            "images": rate.n,
            "exact": round(rate.exact, 6),
            "exact_interval": [round(bound, 6) for bound in rate.exact_interval()],
            "cer": round(rate.cer, 6),
            "cer_interval": [round(bound, 6) for bound in rate.cer_interval()],
            "insertions": rate.insertions,
            "deletions": rate.deletions,
            "substitutions": rate.substitutions,
            "reference_characters": rate.reference_characters,
        }
