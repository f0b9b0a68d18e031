"""How sure a reading is: confidences in [0, 1], and how well they are calibrated.

All functions are pure; evaluation reports and the trainer call them on what a recogniser gave for labelled images.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glyphline.models.decoding.readings import Hypothesis
from glyphline.models.manifest import Aggregate, LogOdds

__all__ = [
    "Aggregate",
    "Coverage",
    "coverage_at_accuracy",
    "evidence",
    "expected_calibration_error",
    "hypothesis_confidence",
    "line_confidence",
    "odds_confidence",
]

_SURE = 1e-6  # evidence of exactly 0 or 1 would outweigh all other

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


def evidence(hypothesis: Hypothesis) -> tuple[float, float]:
    """Returns what tells whether a hypothesis is right, each as log odds, of at most about 14.

    The first is the chance that all symbols are right, were they to err independently of one another. The second is the
    share that it has of what the search holds (the posterior over a list of hypotheses, as Wessel et al. 2001 use it
    for speech): it knows what a language model thought, and how near the next best text is. 0 if the search held none.
    """
    closing = hypothesis.closing_log_probability
    values = hypothesis.symbol_log_probabilities
    symbols = line_confidence(values if closing is None else (*values, closing), "product")
    return _log_odds(symbols), 0.0 if hypothesis.share is None else _log_odds(hypothesis.share)


def odds_confidence(hypothesis: Hypothesis, odds: LogOdds) -> float:
    """Sums up a hypothesis by its evidence.

    Args:
        hypothesis: Of either head.
        odds: What the evidence weighs, as fitted for a bundle.

    Returns:
        The chance that the text is right, in [0, 1].
    """
    symbols, share = evidence(hypothesis)
    if hypothesis.closing_log_probability == -math.inf:
        return 0.0  # nothing that was allowed has room in the image
    return 1.0 / (1.0 + math.exp(-(odds.offset + odds.symbols * symbols + odds.share * share)))


def _log_odds(chance: float) -> float:
    chance = min(max(chance, _SURE), 1.0 - _SURE)
    return math.log(chance / (1.0 - chance))


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
