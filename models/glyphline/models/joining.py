"""What several runs of a network gave, put together as if it had been one run, so that it is searched at once."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Run", "join_runs"]

Run: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""Images of one run (batch, 1, height, width), zero beyond each image's own width, and these widths (batch)."""


def join_runs(runs: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Joins the outputs of runs.

    Args:
        runs: Of each the outputs by name: (batch), (batch, size) or (batch, frames, …). At least one.

    Returns:
        The same for all images, in order. Where runs differ in frames, the shorter ones are filled up with zeros, which
        lie beyond the valid frames of their images.
    """
    if len(runs) == 1:
        return dict(runs[0])
    return {name: _stack([run[name] for run in runs]) for name in runs[0]}


def _stack(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if len({part.shape[1:] for part in parts}) == 1:
        return np.concatenate(parts)
    frames = max(part.shape[1] for part in parts)
    stacked = np.zeros((sum(map(len, parts)), frames, *parts[0].shape[2:]), dtype=parts[0].dtype)
    begin = 0
    for part in parts:
        stacked[begin : begin + len(part), : part.shape[1]] = part
        begin += len(part)
    return stacked
