"""What every step of a step-wise head gave, and how a hypothesis is put together of it."""

import numpy as np
from numpy.typing import NDArray

from glyphline.models.decoding.distributions import FloatArray, calibrated_at
from glyphline.models.decoding.readings import Hypothesis

__all__ = ["END", "History"]

END = 0
"""The class that ends a text."""

_SHARE = 0.75  # of the attention that a place holds; half of it is often on a single stroke
_ROUNDING = 1e-6  # a share of the attention may come out as a little less


class History:
    """What every step gave, so that probabilities and places are worked out only for what is returned."""

    def __init__(self, lengths: NDArray[np.int64], penalty: float, temperature: float, *, guided: bool = False) -> None:
        """Begins without any step.

        Args:
            lengths: Valid frames of each image (images).
            penalty: Exponent α of score / lengthᵅ.
            temperature: Calibrates confidences.
            guided: Whether the totals of hypotheses hold what a guide adds.
        """
        self._lengths = lengths
        self._penalty = penalty
        self._temperature = temperature
        self._guided = guided
        self._log_probabilities: list[FloatArray] = []
        self._attention: list[FloatArray] = []

    def add(self, log_probabilities: FloatArray, attention: FloatArray | None) -> None:
        """Keeps a step's (rows, symbols) and, where it looked at frames, (rows, frames)."""
        self._log_probabilities.append(log_probabilities)
        if attention is not None:
            self._attention.append(attention)

    def hypothesis(
        self,
        image: int,
        symbols: list[int],
        rows: list[int],
        total: float,
        chances: list[float] | None = None,
    ) -> Hypothesis:
        """Puts a hypothesis together.

        Args:
            image: Which it reads.
            symbols: What it says.
            rows: The row that wrote each symbol, step by step, and then the end; without that last it is truncated.
            total: Its log-probability, under a guide with what the guide adds.
            chances: Calibrated log-probabilities of what the rows wrote; None to have them worked out.
        """
        ended = len(rows) > len(symbols)
        log_probability = total
        if chances is None:
            outputs = np.array([step[row] for step, row in zip(self._log_probabilities, rows, strict=False)])
            written = np.array([*symbols, END] if ended else symbols)
            chances = calibrated_at(outputs, written, self._temperature).tolist()
            if self._guided:
                log_probability = float(outputs[np.arange(len(written)), written].sum())
        spans = None
        if self._attention:
            length, looks = int(self._lengths[image]), zip(self._attention, rows, symbols, strict=False)
            spans = tuple(_span(step[row], length) for step, row, _ in looks)
        closing = chances[-1] if ended else None
        return Hypothesis(
            symbols=tuple(symbols),
            score=total / len(rows) ** self._penalty,
            log_probability=log_probability,
            symbol_log_probabilities=tuple(chances[: len(symbols)]),
            closing_log_probability=closing,
            spans=spans,
            truncated=not ended,
        )


def _span(attention: FloatArray, length: int) -> tuple[float, float]:
    """Finds the first and last frame edge of the shortest stretch that holds most of the attention (frames)."""
    reached = np.concatenate(([0.0], np.cumsum(attention[:length], dtype=np.float64)))
    if reached[-1] <= 0.0:
        return 0.0, float(length)
    stops = np.searchsorted(reached, reached[:-1] + reached[-1] * (_SHARE - _ROUNDING))
    starts = (stops < len(reached)).nonzero()[0]
    stops = stops[starts]
    held = reached[stops] - reached[starts]
    best = np.lexsort((-held, stops - starts))[0]  # of equally short ones that which holds most
    return float(starts[best]), float(stops[best])
