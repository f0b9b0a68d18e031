"""The CTC head: a symbol or blank at every frame (Graves et al. 2006, "Connectionist Temporal Classification")."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class CTCHead(nn.Module):
    """Scores every symbol and the blank at each output frame.

    An encoder frame may give several output frames. CTC needs at least one frame a symbol and one more between equal
    neighbours, and narrow characters side by side ("1111") are narrower than two encoder frames.

    Args:
        features: Size of the encoder's features.
        symbols: Outputs, blank included.
        frames_per_step: Output frames for each encoder frame.
        reach: Neighbouring frames on either side that a frame's scores are made from, too.
    """

    def __init__(self, features: int, symbols: int, frames_per_step: int = 2, reach: int = 0) -> None:
        super().__init__()
        self.symbols = symbols
        self.frames_per_step = frames_per_step
        self.reach = reach
        self.project = nn.Linear(features * (1 + 2 * reach), symbols * frames_per_step)

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Maps encoder frames to log-probabilities.

        Args:
            features: `(batch, steps, features)`.
            lengths: Valid steps `(batch,)`.

        Returns:
            Log-probabilities `(batch, steps * frames_per_step, symbols)` and valid frames `(batch,)`.
        """
        batch, steps, _ = features.shape
        if self.reach:  # (batch, steps, features * neighbourhood): a convolution, written as one product
            padded = functional.pad(features, (0, 0, self.reach, self.reach))
            features = padded.unfold(1, 1 + 2 * self.reach, 1).flatten(2)
        scores = self.project(features).reshape(batch, steps * self.frames_per_step, self.symbols)
        return torch.log_softmax(scores.float(), dim=-1), lengths * self.frames_per_step


def ctc_loss(log_probabilities: Tensor, frames: Tensor, labels: Tensor, label_lengths: Tensor) -> Tensor:
    """Mean negative log-likelihood a label.

    Args:
        log_probabilities: `(batch, frames, symbols)`, blank at 0.
        frames: Valid frames `(batch,)`.
        labels: Symbols `(batch, longest)`, padded with anything.
        label_lengths: `(batch,)`; zero is legal.

    Returns:
        Scalar: the sum over the batch divided by its number of symbols (each label counted with its end).
    """
    losses = functional.ctc_loss(
        log_probabilities.transpose(0, 1), labels, frames, label_lengths, blank=0, reduction="none", zero_infinity=True
    )
    return losses.sum() / (label_lengths + 1).sum()
