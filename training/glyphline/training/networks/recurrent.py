"""Recurrent layers over padded sequences, exact for every length, and their initial gate biases."""

from __future__ import annotations

from typing import Literal, cast

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


def run_in_pieces(layer: nn.RNNBase, features: Tensor, cut: int) -> Tensor:
    """Runs a layer piece by piece: the state is carried on, its gradient is not (truncated back-propagation).

    Args:
        layer: A layer of one direction, batch first.
        features: `(batch, frames, inputs)`.
        cut: Frames a piece; 0 runs all in one.

    Returns:
        `(batch, frames, size)`, the same numbers whatever `cut` is.
    """
    if not cut or features.shape[1] <= cut:
        output, _ = layer(features)
        return cast(Tensor, output)
    pieces: list[Tensor] = []
    state: Tensor | tuple[Tensor, ...] | None = None
    for first in range(0, features.shape[1], cut):
        output, state = layer(features[:, first : first + cut], state)  # (batch, cut, size)
        pieces.append(output)
        state = tuple(part.detach() for part in state) if isinstance(state, tuple) else cast(Tensor, state).detach()
    return torch.cat(pieces, dim=1)


class RecurrentLayer(nn.Module):
    """One layer that reads forwards, or forwards and backwards, each direction with weights of its own.

    The backward direction starts at a sequence's own last frame: sequences are reversed within their lengths and read
    forwards. (Packed sequences do the same, but their backward pass on a CPU takes time quadratic in the frames.)

    Args:
        cell: Kind of cell.
        inputs: Size of the input features.
        size: Size of each direction's state.
        gate_bias: Initial bias of the forget or update gate.
        bidirectional: Whether it reads backwards, too.
    """

    def __init__(self, cell: Cell, inputs: int, size: int, gate_bias: float, *, bidirectional: bool = True) -> None:
        super().__init__()
        self.cell = cell
        self.size = size
        self.ahead = CELLS[cell](inputs, size, batch_first=True)
        self.back = CELLS[cell](inputs, size, batch_first=True) if bidirectional else None
        for direction in self.directions:
            open_gates(direction, gate_bias)

    @property
    def directions(self) -> list[nn.RNNBase]:
        """The layer's one or two directions."""
        return [self.ahead] if self.back is None else [self.ahead, self.back]

    def forward(self, features: Tensor, lengths: Tensor, cut: int = 0) -> Tensor:
        """Maps `(batch, frames, inputs)` to `(batch, frames, directions * size)`.

        What comes out beyond a sequence's length is anything. With `cut`, no gradient passes a border between pieces of
        so many frames, counted from where each direction starts.
        """
        ahead = run_in_pieces(self.ahead, features, cut)  # (batch, frames, size)
        if self.back is None:
            return ahead
        back = run_in_pieces(self.back, reverse_valid(features, lengths), cut)
        return torch.cat((ahead, reverse_valid(back, lengths)), dim=2)  # (batch, frames, 2 * size)


class RecurrentLayers(nn.Module):
    """Stacked recurrent layers over padded sequences; no result depends on the padding.

    Args:
        cell: Kind of cell.
        inputs: Size of the input features.
        size: Size of each direction's state.
        layers: Number of layers; with none, features pass unchanged.
        dropout: Share of features zeroed between layers while training.
        gate_bias: Initial bias of the forget or update gate.
        bidirectional: Whether the layers read backwards, too.
    """

    def __init__(
        self,
        cell: Cell,
        inputs: int,
        size: int,
        layers: int,
        dropout: float = 0.0,
        gate_bias: float = 1.0,
        *,
        bidirectional: bool = True,
    ) -> None:
        super().__init__()
        width = size * (2 if bidirectional else 1)
        self.outputs = width if layers else inputs
        self.backward_outputs = size if layers and bidirectional else 0
        self.layers = nn.ModuleList(
            RecurrentLayer(cell, width if index else inputs, size, gate_bias, bidirectional=bidirectional)
            for index in range(layers)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor, lengths: Tensor, cut: int = 0) -> Tensor:
        """Runs the layers.

        Args:
            features: `(batch, frames, inputs)`.
            lengths: Valid frames `(batch,)`, at least one each.
            cut: Frames after which the gradient is cut; 0 never cuts it.

        Returns:
            `(batch, frames, outputs)`, zero beyond each length.
        """
        for index, layer in enumerate(self.layers):
            features = self.dropout(features) if index else features
            features = layer(features, lengths, cut) if cut else layer(features, lengths)
        return features * valid_mask(lengths, features.shape[1]).unsqueeze(2)
