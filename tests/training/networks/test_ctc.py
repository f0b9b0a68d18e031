from __future__ import annotations

import itertools
import math

import pytest
import torch

from glyphline.training.networks.ctc import CTCHead, ctc_loss


def collapse(path: tuple[int, ...]) -> list[int]:
    """Merges repeats, then drops blanks."""
    return [symbol for symbol, _ in itertools.groupby(path) if symbol]


@pytest.mark.parametrize("label", [[], [1], [1, 1], [1, 2], [2, 1, 2]])
def test_the_loss_is_the_sum_over_all_alignments(label: list[int]) -> None:
    torch.manual_seed(0)
    frames, symbols = 4, 3
    log_probabilities = torch.log_softmax(torch.randn(1, frames, symbols), dim=2)
    probabilities = log_probabilities.exp()[0]
    total = sum(
        math.prod(float(probabilities[frame, symbol]) for frame, symbol in enumerate(path))
        for path in itertools.product(range(symbols), repeat=frames)
        if collapse(path) == label
    )
    labels = torch.tensor([label or [0]])
    loss = ctc_loss(log_probabilities, torch.tensor([frames]), labels, torch.tensor([len(label)]))
    assert float(loss) == pytest.approx(-math.log(total) / (len(label) + 1), rel=1e-4)


def test_a_head_gives_several_frames_a_step() -> None:
    head = CTCHead(6, 5, frames_per_step=3)
    features = torch.randn(2, 7, 6)
    log_probabilities, frames = head(features, torch.tensor([7, 4]))
    assert log_probabilities.shape == (2, 21, 5)
    assert frames.tolist() == [21, 12]
    torch.testing.assert_close(log_probabilities.exp().sum(2), torch.ones(2, 21))
    first = torch.log_softmax(head.project(features)[0, 2].reshape(3, 5)[1], dim=0)
    torch.testing.assert_close(log_probabilities[0, 2 * 3 + 1], first)
