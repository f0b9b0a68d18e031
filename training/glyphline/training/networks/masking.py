"""Lengths and masks, so that padding never changes a result.

A strip's result must not depend on how far its batch mates made it be padded. Two things together make that exact:
columns beyond a strip's own width are zeroed after every block of convolutions, and recurrences stop at its last frame.
"""

from __future__ import annotations

import torch
from torch import Tensor


def halved(lengths: Tensor) -> Tensor:
    """Returns the number of columns left after a pooling step of two, rounded up."""
    return torch.div(lengths + 1, 2, rounding_mode="floor")


def valid_mask(lengths: Tensor, longest: int) -> Tensor:
    """Returns which positions are real.

    Args:
        lengths: Integer lengths `(batch,)`.
        longest: Number of positions.

    Returns:
        Boolean mask `(batch, longest)`.
    """
    return torch.arange(longest, device=lengths.device).unsqueeze(0) < lengths.unsqueeze(1)
