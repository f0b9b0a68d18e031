"""The losses of a batch: one for each head, and their sum."""

from __future__ import annotations

import torch
from torch import Tensor

from glyphline.training.config import LoopConfig
from glyphline.training.networks.ctc import ctc_loss
from glyphline.training.networks.decoder import decoder_loss
from glyphline.training.networks.recogniser import RecogniserNetwork

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
        The mean loss a symbol of each head, by the head's name. Every label counts with its end, padding not at all.
    """
    labels, lengths = batch["labels"], batch["label_lengths"]
    head = network.config.decoder_head
    inputs = None if head is None else decoder_inputs(labels, network.symbols, loop.input_masking)
    ctc, scores = network(
        batch["images"],
        batch["widths"],
        inputs,
        sampling=sampling,
        cut=loop.cut_steps,
        encoder_cut=loop.cut_frames,
    )
    losses: dict[str, Tensor] = {}
    if ctc is not None:
        losses["ctc"] = ctc_loss(ctc[0], ctc[1], labels, lengths)
    if scores is not None and head is not None:
        losses[head] = decoder_loss(scores, labels, lengths, loop.label_smoothing)
    return losses


def total_loss(losses: dict[str, Tensor], ctc_weight: float) -> Tensor:
    """The weighted sum of the heads' losses; a lone head has weight 1."""
    alone = len(losses) == 1
    weights = {name: 1.0 if alone else ctc_weight if name == "ctc" else 1 - ctc_weight for name in losses}
    return torch.stack([weights[name] * loss for name, loss in losses.items()]).sum()
