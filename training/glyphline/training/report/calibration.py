"""Statistics of confidence: how far it can be believed, what calibrates it, and how many lines it lets through.

All functions are pure. They add to `glyphline.models.decoding.confidence` what only a report asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from glyphline.models.decoding.confidence import Flags, Floats, expected_calibration_error
from glyphline.models.error_rate import wilson_interval

BINS = 15
_SURE = 1e-6  # a confidence of exactly 0 or 1 that proves wrong would weigh infinitely


@dataclass(frozen=True, slots=True)
class Bin:
    """Lines of about the same confidence.

    Attributes:
        lines: How many.
        confidence: Their mean confidence.
        exact: Share of them that is right.
        interval: 95 % interval of that share (Wilson).
    """

    lines: int
    confidence: float
    exact: float
    interval: tuple[float, float]


def reliability(confidences: Floats, correct: Flags, bins: int = BINS) -> list[Bin]:
    """Compares confidence with the share of right readings, in the groups of `expected_calibration_error`.

    Args:
        confidences: Of each line, in [0, 1] (lines).
        correct: Whether each is right (lines).
        bins: Number of equally wide groups.

    Returns:
        The groups that hold any line, by rising confidence.
    """
    values, flags = np.asarray(confidences, dtype=np.float64), np.asarray(correct, dtype=bool)
    groups = np.minimum((values * bins).astype(np.int64), bins - 1)
    found = []
    for group in np.unique(groups):
        inside = groups == group
        lines, right = int(inside.sum()), int(flags[inside].sum())
        found.append(Bin(lines, float(values[inside].mean()), right / lines, wilson_interval(right, lines)))
    return found


def chance_calibration_error(confidences: Floats, *, seed: int = 0, draws: int = 200, bins: int = BINS) -> float:
    """Estimates the calibration error that perfectly calibrated confidences would show on so many lines.

    It is never 0: the share of right readings in a group scatters, and the error adds up the scatter. A measured error
    of about this size says nothing against the confidences.

    Args:
        confidences: Of each line (lines).
        seed: Makes the result repeatable.
        draws: How often the lines are made right or wrong at random, as their confidences say.
        bins: See `expected_calibration_error`.
    """
    values = np.asarray(confidences, dtype=np.float64)
    generator = np.random.default_rng(seed)
    errors = [expected_calibration_error(values, generator.random(values.size) < values, bins) for _ in range(draws)]
    return float(np.mean(errors))


def log_loss(confidences: Floats, correct: Flags) -> float:
    """Mean surprise, in nats, at which lines are right; lower is better, and 0 if there are no lines."""
    values = np.clip(np.asarray(confidences, dtype=np.float64), _SURE, 1 - _SURE)
    flags = np.asarray(correct, dtype=bool)
    return float(-np.log(np.where(flags, values, 1 - values)).mean()) if values.size else 0.0


def separation(confidences: Floats, correct: Flags) -> float | None:
    """Chance that a right line has a higher confidence than a wrong one (the area under the ROC curve).

    What calibration cannot change: only another measure of confidence separates better.

    Returns:
        The chance, ties counted half; None unless there are both right and wrong lines.
    """
    values, flags = np.asarray(confidences, dtype=np.float64), np.asarray(correct, dtype=bool)
    right, wrong = int(flags.sum()), int((~flags).sum())
    if not right or not wrong:
        return None
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return float((ranks[flags].sum() - right * (right + 1) / 2) / (right * wrong))


def coverage_curve(confidences: Floats, correct: Flags) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What goes through at every threshold, and how much of it is wrong.

    Returns:
        Share of lines accepted and share of those that is wrong, from the highest threshold to the lowest; lines of
        equal confidence are accepted together.
    """
    values, flags = np.asarray(confidences, dtype=np.float64), np.asarray(correct, dtype=bool)
    order = np.argsort(-values, kind="stable")
    taken, wrong = np.arange(1, values.size + 1), np.cumsum(~flags[order])
    last = np.append(values[order][1:] != values[order][:-1], True) if values.size else np.zeros(0, dtype=bool)
    return taken[last] / max(values.size, 1), wrong[last] / taken[last]


def log_odds(confidences: Floats) -> NDArray[np.float64]:
    """Returns the logarithms of c / (1 − c), of at most about 14 (lines)."""
    values = np.clip(np.asarray(confidences, dtype=np.float64), _SURE, 1 - _SURE)
    return np.asarray(np.log(values) - np.log1p(-values))


def refit_by_halves(confidences: Floats, correct: Flags, *, seed: int = 0) -> NDArray[np.float64]:
    """Fits a scale and an offset of the log odds on either half of the lines and applies them to the other.

    So no line judges itself. A half whose lines are all right, or all wrong, teaches nothing: the other stays as it is.

    Args:
        confidences: Of each line (lines).
        correct: Whether each is right (lines), at least two.
        seed: Deals the lines into halves.

    Returns:
        Confidences of all lines.
    """
    flags = np.asarray(correct, dtype=bool)
    odds = log_odds(confidences)[:, None]
    order = np.random.default_rng(seed).permutation(flags.size)
    halves = order[: flags.size // 2], order[flags.size // 2 :]
    values = np.array(confidences, dtype=np.float64)
    for applied, fitted in (halves, halves[::-1]):
        if 0 < flags[fitted].sum() < fitted.size and applied.size:
            model = LogisticRegression(C=100.0).fit(odds[fitted], flags[fitted])
            values[applied] = model.predict_proba(odds[applied])[:, 1]
    return values
