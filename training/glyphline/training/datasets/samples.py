"""What a data set yields, and the few array helpers that all of them share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from glyphline.training.errors import DataError

Grey = NDArray[np.uint8]
"""A grey picture `(height, width)`, as a camera gives it: 0 is black and 255 is white."""

Ink = NDArray[np.uint8]
"""A drawing `(height, width)` without a background: 0 is no ink and 255 is full ink."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One labelled strip.

    Attributes:
        pixels: Grey picture `(height, width)`.
        text: Its true text.
        source: Where it comes from, for reports: a file name, or the name of the data set and a number.
    """

    pixels: Grey
    text: str
    source: str


class SampleSource(Protocol):
    """Makes any number of samples, each a pure function of the random generator that it is given."""

    def draw(self, random: np.random.Generator) -> Sample:
        """Returns one sample.

        Raises:
            UnusableSampleError: If the one that was drawn cannot be used; another draw may give one that can.
        """
        ...


class UnusableSampleError(DataError):
    """A strip that cannot be trained on, as one whose picture is damaged: it is skipped, and counted.

    Attributes:
        reason: Why, in a word or three, the same for all strips of its kind.
        source: The strip.
    """

    def __init__(self, reason: str, source: str, message: str = "") -> None:
        super().__init__(message or f"{source}: {reason}")
        self.reason = reason
        self.source = source


@dataclass
class SkipCounts:
    """How many strips were skipped, by reason, with a few of them by name.

    Attributes:
        counts: Number of strips a reason.
        examples: The first few strips of each reason, none twice.
    """

    EXAMPLES: ClassVar[int] = 5

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, source: str) -> None:
        """Counts one strip."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        self._show(reason, source)

    def merge(self, other: SkipCounts) -> None:
        """Adds what another count has, as that of another process."""
        for reason, count in other.counts.items():
            self.counts[reason] = self.counts.get(reason, 0) + count
        for reason, sources in other.examples.items():
            for source in sources:
                self._show(reason, source)

    def _show(self, reason: str, source: str) -> None:
        shown = self.examples.setdefault(reason, [])
        if source not in shown and len(shown) < self.EXAMPLES:
            shown.append(source)

    def __bool__(self) -> bool:
        return bool(self.counts)

    def __str__(self) -> str:
        return "; ".join(
            f"{count} skipped, {reason} ({', '.join(self.examples.get(reason, []))})"
            for reason, count in sorted(self.counts.items())
        )


def ink_box(ink: Ink, threshold: int = 40) -> tuple[int, int, int, int]:
    """Finds the box that holds the ink.

    Args:
        ink: Drawing `(height, width)`.
        threshold: Least value that counts as ink.

    Returns:
        `(top, bottom, left, right)`, ends exclusive; the whole picture where there is no ink.
    """
    marked = ink >= threshold
    rows = np.flatnonzero(marked.any(axis=1))
    columns = np.flatnonzero(marked.any(axis=0))
    if rows.size == 0:
        return 0, ink.shape[0], 0, ink.shape[1]
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
