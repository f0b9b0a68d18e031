"""What a data set yields, and the few array helpers that all of them share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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
        """Returns one sample."""
        ...


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
