"""How sure a reading is: confidences in [0, 1], how well they are calibrated, and the temperature that calibrates them.

All functions are pure; evaluation reports and the trainer call them on what a recogniser gave for labelled images.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glyphline.models.bundle import Aggregate
from glyphline.models.decoding.readings import Hypothesis

__all__ = [
    "Aggregate",
    "Coverage",
    "coverage_at_accuracy",
    "expected_calibration_error",
    "fit_temperature",
    "hypothesis_confidence",
    "line_confidence",
]

_SURE = 1e-6  # a confidence of exactly 0 or 1 that proves wrong would weigh infinitely
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0

Floats = NDArray[np.float64] | Sequence[float]
Flags = NDArray[np.bool_] | Sequence[bool]


def line_confidence(log_probabilities: Sequence[float], aggregate: Aggregate = "mean") -> float:
    """Sums up the log-probabilities of a line's symbols.

    Args:
        log_probabilities: One per symbol, at most 0.
        aggregate: `mean` is the geometric mean, which does not fall with length; `min` is the weakest symbol, which a
            mean would hide; `product` is the probability that all are right if they err independently.

    Returns:
        A confidence in [0, 1]; 1 where there is nothing to doubt.
    """
    if not log_probabilities:
        return 1.0
    if aggregate == "min":
        value = min(log_probabilities)
    else:
        value = math.fsum(log_probabilities)
        if aggregate == "mean":
            value /= len(log_probabilities)
    return math.exp(min(value, 0.0))


def hypothesis_confidence(hypothesis: Hypothesis, aggregate: Aggregate = "mean") -> float:
    """Sums up a hypothesis: its symbols, and that nothing more follows where the decoder weighs that.

    Args:
        hypothesis: Of either head.
        aggregate: See `line_confidence`.

    Returns:
        A confidence in [0, 1].
    """
    closing = hypothesis.closing_log_probability
    values = hypothesis.symbol_log_probabilities
    return line_confidence(values if closing is None else (*values, closing), aggregate)


def expected_calibration_error(confidences: Floats, correct: Flags, bins: int = 15) -> float:
    """Measures how far confidences are from the share of readings that are right.

    Args:
        confidences: Of each reading, in [0, 1] (readings).
        correct: Whether each reading is right (readings).
        bins: Readings are compared in this many groups of equally wide confidence.

    Returns:
        The mean over readings of |mean confidence − share right| of their group; 0 if there are no readings.
    """
    values, flags = np.asarray(confidences, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    if not values.size:
        return 0.0
    groups = np.minimum((values * bins).astype(np.int64), bins - 1)
    gaps = np.bincount(groups, weights=values - flags, minlength=bins)
    return float(np.abs(gaps).sum() / values.size)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many readings may go through unseen.

    Attributes:
        share: Of all readings, in [0, 1].
        threshold: They are those of at least this confidence; above 1 if none may.
    """

    share: float
    threshold: float


def coverage_at_accuracy(confidences: Floats, correct: Flags, accuracy: float = 0.999) -> Coverage:
    """Finds the largest share of readings, the surest first, of which at least a given part is right.

    Args:
        confidences: Of each reading (readings).
        correct: Whether each reading is right (readings).
        accuracy: Share of the accepted readings that has to be right.

    Returns:
        The share and the confidence from which on readings are accepted. Readings of equal confidence are accepted
        together or not at all, since no threshold could tell them apart.
    """
    values, flags = np.asarray(confidences, dtype=np.float64), np.asarray(correct, dtype=np.int64)
    if not values.size:
        return Coverage(share=0.0, threshold=math.inf)
    order = np.argsort(-values, kind="stable")
    values, right = values[order], np.cumsum(flags[order])
    taken = np.arange(1, values.size + 1)
    last_of_equals = np.append(values[1:] != values[:-1], True)
    # Compared as wrong readings, which are few: a share close to 1 would be rounded.
    acceptable = last_of_equals & (taken - right <= (1.0 - accuracy) * taken + 1e-9)
    if not acceptable.any():
        return Coverage(share=0.0, threshold=math.inf)
    last = int(acceptable.nonzero()[0][-1])
    return Coverage(share=(last + 1) / values.size, threshold=float(values[last]))


def fit_temperature(
    confidences_at: Callable[[float], Floats],
    correct: Flags,
    *,
    low: float = 0.25,
    high: float = 8.0,
    tolerance: float = 1e-3,
) -> float:
    """Finds the temperature at which line confidences best foretell which lines are right.

    It minimises the negative log-likelihood of `correct` under the confidences, by golden-section search over the
    logarithm of the temperature.

    Args:
        confidences_at: Gives the confidence of every line of a validation set at a temperature (lines).
        correct: Whether each line is right (lines). The temperature never changes what is read.
        low: Least temperature considered.
        high: Greatest temperature considered.
        tolerance: Relative precision of the result.

    Returns:
        The temperature, 1 if there are no lines. It lies at a bound if all lines are right, or all wrong.
    """
    flags = np.asarray(correct, dtype=bool)
    if not flags.size:
        return 1.0

    def loss(logarithm: float) -> float:
        values = np.clip(np.asarray(confidences_at(math.exp(logarithm)), dtype=np.float64), _SURE, 1.0 - _SURE)
        return -float(np.log(np.where(flags, values, 1.0 - values)).mean())

    left, right = math.log(low), math.log(high)
    inner_left, inner_right = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
    loss_left, loss_right = loss(inner_left), loss(inner_right)
    while right - left > tolerance:
        if loss_left <= loss_right:
            right, inner_right, loss_right = inner_right, inner_left, loss_left
            inner_left = right - _GOLDEN * (right - left)
            loss_left = loss(inner_left)
        else:
            left, inner_left, loss_left = inner_left, inner_right, loss_right
            inner_right = left + _GOLDEN * (right - left)
            loss_right = loss(inner_right)
    return math.exp((left + right) / 2.0)
