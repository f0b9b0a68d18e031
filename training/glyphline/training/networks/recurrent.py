"""Recurrent layers over padded sequences, exact for every length, and their initial gate biases."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from glyphline.training.networks.masking import valid_mask

Cell = Literal["rnn", "gru", "lstm"]

CELLS: dict[Cell, type[nn.RNN] | type[nn.GRU] | type[nn.LSTM]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


def open_gates(module: nn.RNNBase | nn.RNNCellBase, bias: float = 1.0) -> None:
    """Initialises recurrent biases so that a cell remembers at first.

    The forget gate of an LSTM and the update gate of a GRU start at `bias` (Gers et al. 2000, "Learning to Forget";
    Jozefowicz et al. 2015). PyTorch orders the gates i, f, g, o and r, z, n, and adds two bias vectors: the first gets
    the value, the second zero.

    Args:
        module: Recurrent layers or one cell.
        bias: Initial value of the gate's total bias.
    """
    size = module.hidden_size
    for name, parameter in module.named_parameters():
        if "bias" not in name:
            continue
        with torch.no_grad():
            parameter.zero_()
            gated = isinstance(module, nn.LSTM | nn.LSTMCell | nn.GRU | nn.GRUCell)
            if gated and "bias_ih" in name:
                parameter[size : 2 * size] = bias


def reverse_valid(features: Tensor, lengths: Tensor) -> Tensor:
    """Reverses each sequence within its own length; what lies beyond stays where it is.

    Args:
        features: `(batch, frames, features)`.
        lengths: Valid frames `(batch,)`.

    Returns:
        `(batch, frames, features)`; applied twice, it gives back its input.
    """
    positions = torch.arange(features.shape[1], device=features.device).unsqueeze(0)
    last = lengths.unsqueeze(1) - 1
    index = torch.where(positions <= last, last - positions, positions)  # (batch, frames)
    return torch.gather(features, 1, index.unsqueeze(2).expand_as(features))


class BidirectionalLayer(nn.Module):
    """One layer that reads forwards and backwards, each direction with weights of its own.

    The backward direction starts at a sequence's own last frame: sequences are reversed within their lengths and read
    forwards. (Packed sequences do the same, but their backward pass on a CPU takes time quadratic in the frames.)

    Args:
        cell: Kind of cell.
        inputs: Size of the input features.
        size: Size of each direction's state.
        gate_bias: Initial bias of the forget or update gate.
    """

    def __init__(self, cell: Cell, inputs: int, size: int, gate_bias: float) -> None:
        super().__init__()
        self.cell = cell
        self.size = size
        self.ahead = CELLS[cell](inputs, size, batch_first=True)
        self.back = CELLS[cell](inputs, size, batch_first=True)
        open_gates(self.ahead, gate_bias)
        open_gates(self.back, gate_bias)

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Maps `(batch, frames, inputs)` to `(batch, frames, 2 * size)`; beyond a sequence's length is anything."""
        ahead, _ = self.ahead(features)
        back, _ = self.back(reverse_valid(features, lengths))
        return torch.cat((ahead, reverse_valid(back, lengths)), dim=2)


class BidirectionalLayers(nn.Module):
    """Stacked bidirectional recurrent layers over padded sequences; no result depends on the padding.

    Args:
        cell: Kind of cell.
        inputs: Size of the input features.
        size: Size of each direction's state.
        layers: Number of layers.
        dropout: Share of features zeroed between layers while training.
        gate_bias: Initial bias of the forget or update gate.
    """

    def __init__(
        self, cell: Cell, inputs: int, size: int, layers: int, dropout: float = 0.0, gate_bias: float = 1.0
    ) -> None:
        super().__init__()
        self.outputs = 2 * size
        self.layers = nn.ModuleList(
            BidirectionalLayer(cell, inputs if index == 0 else 2 * size, size, gate_bias) for index in range(layers)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Runs the layers.

        Args:
            features: `(batch, frames, inputs)`.
            lengths: Valid frames `(batch,)`, at least one each.

        Returns:
            `(batch, frames, 2 * size)`, zero beyond each length.
        """
        for index, layer in enumerate(self.layers):
            features = layer(self.dropout(features) if index else features, lengths)
        return features * valid_mask(lengths, features.shape[1]).unsqueeze(2)
