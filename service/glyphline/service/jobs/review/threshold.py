"""From which confidence on readings need no look: found on rows whose true texts are known."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from glyphline.models.decoding.confidence import coverage_at_accuracy
from glyphline.models.error_rate import wilson_interval
from glyphline.service.jobs.review.texts import same_text
from glyphline.service.jobs.wording import counted, there_are

__all__ = ["Basis", "find_basis", "needed_references"]


@dataclass(frozen=True, slots=True)
class Basis:
    """By what rows were chosen.

    Attributes:
        threshold: Readings below it are doubtful; infinite where none is high enough, None where it is not known and
            the least sure are taken.
        accuracy: Share of the readings from the threshold on that should be right; None where the threshold was given.
        references: Readings whose true text is known.
        needed: How many of them it takes to find a threshold.
        accepted: How many of them lie at the threshold or above.
        right: How many of these are right.
    """

    threshold: float | None
    accuracy: float | None = None
    references: int = 0
    needed: int = 0
    accepted: int = 0
    right: int = 0

    def sentence(self, shown: int) -> str:
        """Says for people how rows were chosen, of which `shown` are for their confidence alone."""
        if self.accuracy is None:
            return f"Readings with a confidence below {self.threshold:g}, as asked."
        asked = f"{self.accuracy * 100:.4g} %"
        if self.threshold is None:
            least = "The least sure reading" if shown == 1 else f"The {shown:,} least sure readings"
            return (
                f"{least if shown else 'No reading for its confidence alone'}: the confidence from which on {asked} are"
                f" right is not known. To find it takes {self.needed:,} rows with references, and"
                f" {there_are(self.references)}."
            )
        of = f"of the {counted(self.references, 'row')} with references"
        if math.isinf(self.threshold):
            return f"All readings are doubtful: {of}, no confidence sets {asked} right ones apart."
        low, high = (bound * 100 for bound in wilson_interval(self.right, self.accepted))
        lie = "1 lies" if self.accepted == 1 else f"{self.accepted:,} lie"
        return (
            f"Readings with a confidence below {self.threshold:.4f}: {of}, {lie} at it or above, and"
            f" {self.right / self.accepted * 100:.2f} % of these are right (95 %: {low:.2f} to {high:.2f} %)."
        )


def needed_references(accuracy: float) -> int:
    """Returns how many readings it takes: if none of so many is wrong, one can be 95 % sure of the accuracy."""
    return math.ceil(3 / (1 - accuracy) - 1e-9)


def find_basis(rows: Iterable[Mapping[str, Any]], accuracy: float) -> Basis:
    """Finds the threshold on the rows that have references.

    Args:
        rows: All rows of a job.
        accuracy: Share of the readings from the threshold on that should be right, above 0 and below 1.
    """
    confidences, correct = array("d"), array("b")
    for row in rows:
        if row.get("reference") is not None and row["text"] is not None:
            confidences.append(row["confidence"])
            correct.append(same_text(row["text"], row["reference"]))
    needed = needed_references(accuracy)
    if len(confidences) < needed:
        return Basis(None, accuracy, len(confidences), needed)
    values, flags = np.asarray(confidences), np.asarray(correct, dtype=bool)
    threshold = coverage_at_accuracy(values, flags, accuracy).threshold
    accepted = values >= threshold
    return Basis(threshold, accuracy, values.size, needed, int(accepted.sum()), int(flags[accepted].sum()))
