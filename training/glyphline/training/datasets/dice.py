"""Many small random decisions at little cost: drawn in blocks from a generator, and so a function of its state."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

_BLOCK = 128
Value = TypeVar("Value")


class Dice:
    """Random decisions for one strip.

    A call of a numpy generator costs a microsecond or two, and a strip takes a hundred decisions: here they come from
    a list of uniform numbers.
    """

    __slots__ = ("_at", "_block", "random")

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        self._block: list[float] = random.random(_BLOCK).tolist()
        self._at = 0

    def unit(self) -> float:
        """Returns a number in [0, 1)."""
        if self._at == _BLOCK:
            self._block = self.random.random(_BLOCK).tolist()
            self._at = 0
        self._at += 1
        return self._block[self._at - 1]

    def chance(self, probability: float) -> bool:
        """Decides for yes with a probability; takes one number whatever it is."""
        return self.unit() < probability

    def between(self, least: float, most: float) -> float:
        """Returns a number between two."""
        return least + (most - least) * self.unit()

    def whole(self, least: int, below: int) -> int:
        """Returns a whole number, at least `least` and less than `below`."""
        return least + int((below - least) * self.unit())

    def normal(self, deviation: float = 1.0) -> float:
        """Returns a number about 0, never further than three deviations: four uniform numbers' sum is near a normal."""
        return (self.unit() + self.unit() + self.unit() + self.unit() - 2.0) * 1.732 * deviation

    def pick(self, values: Sequence[Value]) -> Value:
        """Returns one of some values."""
        return values[int(len(values) * self.unit())]

    def pick_by(self, values: Sequence[Value], sums: Sequence[float]) -> Value:
        """Returns one of some values by its share.

        Args:
            values: The values.
            sums: Running sums of their shares; the last is the sum of all.
        """
        return values[min(bisect_right(sums, self.unit() * sums[-1]), len(values) - 1)]
