"""Whether a CTC head can write a text on a strip: it needs a frame for each symbol, and one more between equal ones."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

COLUMNS = 4
"""Columns of pixels for one frame of the encoder."""

TOO_LONG = "label longer than its frames"
"""Why a strip is skipped that is too narrow for its text."""


def needed_frames(symbols: Sequence[int]) -> int:
    """Returns the least number of frames: one a symbol, one more between equal neighbours."""
    return len(symbols) + sum(first == second for first, second in itertools.pairwise(symbols))


def available_frames(width: int, frames_per_step: int) -> int:
    """Returns the number of frames that a strip gives.

    Args:
        width: Its normalised width, with padding.
        frames_per_step: CTC frames for each frame of the encoder (`network.frames_per_step`).
    """
    return -(-width // COLUMNS) * frames_per_step
