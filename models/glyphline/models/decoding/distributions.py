"""Log-probabilities over symbols: normalised, restricted to allowed symbols, calibrated by a temperature."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FloatArray", "calibrated_at", "log_softmax", "restrict"]

FloatArray = NDArray[np.floating[Any]]


def log_softmax(values: FloatArray) -> FloatArray:
    """Normalises logits over the last axis.

    Args:
        values: Logits (..., symbols). A row may hold -inf, but not everywhere.

    Returns:
        Log-probabilities (..., symbols).
    """
    shifted = values - values.max(axis=-1, keepdims=True)
    result: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def restrict(log_probabilities: FloatArray, allowed: NDArray[np.bool_] | None) -> FloatArray:
    """Leaves only allowed symbols and shares the probability of the others among them.

    Args:
        log_probabilities: (..., symbols).
        allowed: (symbols), at least one True; None allows all.

    Returns:
        Log-probabilities (..., symbols), normalised again, -inf where not allowed. Where every allowed symbol has
        probability zero, all of them become equally likely: a restriction never leaves nothing to choose from.
    """
    if allowed is None:
        return log_probabilities
    masked = np.where(allowed, log_probabilities, -np.inf)
    impossible = np.isneginf(masked.max(axis=-1))
    if impossible.any():
        masked[impossible] = np.where(allowed, 0.0, -np.inf)
    return log_softmax(masked)


def calibrated_at(log_probabilities: FloatArray, symbols: NDArray[np.int64], temperature: float) -> FloatArray:
    """Picks one symbol a row, its probability calibrated.

    Args:
        log_probabilities: (rows, symbols), normalised.
        symbols: Symbol of each row (rows).
        temperature: Divides the log-probabilities, which are then normalised again. Above 1 it makes the model humbler.

    Returns:
        Calibrated log-probabilities (rows), at most 0.
    """
    rows = np.arange(len(symbols))
    if temperature == 1.0:
        chosen = log_probabilities[rows, symbols]
    else:
        scaled = log_probabilities / temperature
        peak = scaled.max(axis=1)
        total = np.exp(scaled - peak[:, None]).sum(axis=1)
        chosen = scaled[rows, symbols] - peak - np.log(total)
    result: FloatArray = np.minimum(chosen, 0.0)
    return result
