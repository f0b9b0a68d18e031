"""The losses of a batch: one for each head, and their sum."""

from __future__ import annotations

import torch
from torch import Tensor

from glyphline.training.config import LoopConfig
from glyphline.training.networks.ctc import ctc_loss
from glyphline.training.networks.decoder import decoder_loss
from glyphline.training.networks.recogniser import RecogniserNetwork

SHORTCUT = "shortcut"
"""Name of the loss of the CTC shortcut."""

TensorBatch = dict[str, Tensor]
"""`images`, `widths`, `labels` and `label_lengths`, as `glyphline.training.datasets.batches.Batch` has them."""


def decoder_inputs(labels: Tensor, symbols: int, masking: float) -> Tensor:
    """What a step-wise head is given at each step; a few symbols are replaced, as its own errors will be.

    Args:
        labels: `(batch, longest)`.
        symbols: Outputs of the network; input `symbols` is the start.
        masking: Share of symbols replaced by random ones.

    Returns:
        Start symbol and label `(batch, longest + 1)`.
    """
    start = torch.full_like(labels[:, :1], symbols)
    masked = torch.rand(labels.shape, device=labels.device) < masking
    other = torch.randint_like(labels, 1, symbols)
    return torch.cat((start, torch.where(masked, other, labels)), dim=1)


def head_losses(
    network: RecogniserNetwork, batch: TensorBatch, loop: LoopConfig, sampling: float = 0.0
) -> dict[str, Tensor]:
    """Runs a network on a batch.

    Args:
        network: The network.
        batch: The batch.
        loop: Smoothing, masking and cuts.
        sampling: Share of the step-wise head's input symbols that are its own.

    Returns:
        The mean loss a symbol of each head, by the head's name, and of the shortcut. Every label counts with its end,
        padding not at all.
    """
    labels, lengths = batch["labels"], batch["label_lengths"]
    head = network.config.decoder_head
    inputs = None if head is None else decoder_inputs(labels, network.symbols, loop.input_masking)
    outputs = network(
        batch["images"],
        batch["widths"],
        inputs,
        sampling=sampling,
        restarts=loop.restarts,
        cut=loop.cut_steps,
        encoder_cut=loop.cut_frames,
    )
    losses: dict[str, Tensor] = {}
    if outputs.ctc is not None:
        losses["ctc"] = ctc_loss(outputs.ctc[0], outputs.ctc[1], labels, lengths)
    if outputs.scores is not None and head is not None:
        losses[head] = decoder_loss(outputs.scores, labels, lengths, loop.label_smoothing)
    if outputs.shortcut is not None:
        losses[SHORTCUT] = ctc_loss(outputs.shortcut[0], outputs.shortcut[1], labels, lengths)
    return losses


def total_loss(losses: dict[str, Tensor], loop: LoopConfig) -> Tensor:
    """The weighted sum of the losses: a lone head has weight 1, two share it, and a shortcut comes on top."""
    alone = len(losses.keys() - {SHORTCUT}) == 1
    both = 1.0 if alone else 1 - loop.ctc_weight
    weights = {"ctc": 1.0 if alone else loop.ctc_weight, SHORTCUT: loop.shortcut_weight}
    return torch.stack([weights.get(name, both) * loss for name, loss in losses.items()]).sum()
