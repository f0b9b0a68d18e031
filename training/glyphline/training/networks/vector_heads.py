"""Heads that put the whole strip into one vector before they write: the oldest way, and the measure of attention.

They differ in what the vector is and in where it enters the decoder. None of them looks at the strip again, so their
symbols have no places, and long texts wear the vector out; for short texts and for descriptions of a picture they do.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from glyphline.training.networks.decoder import State, StepDecoder
from glyphline.training.networks.recurrent import Cell


def mean_over_frames(memory: Tensor, lengths: Tensor) -> Tensor:
    """Returns the mean over the valid frames of `(batch, frames, features)`, zero beyond them: `(batch, features)`."""
    return memory.sum(dim=1) / lengths.clamp(min=1).unsqueeze(1).to(memory.dtype)


class VectorDecoder(StepDecoder):
    """A decoder that is given symbols and its own state, and nothing of the frames.

    s_t = cell(E y_{t-1}, s_{t-1}), P(y_t) = softmax(O s_t).

    Args:
        symbols: Outputs, the end symbol at 0 included; input `symbols` is the start.
        cell: Kind of cell.
        size: Size of the state of each layer.
        layers: Number of layers.
        embedding: Size of the symbol embedding E.
        dropout: Share zeroed before the output layer while training.
        gate_bias: Initial bias of the gate that keeps the state.
        besides: Size of what the first layer is given at every step besides the symbol.
    """

    def __init__(
        self,
        symbols: int,
        cell: Cell,
        size: int,
        layers: int,
        embedding: int,
        dropout: float,
        gate_bias: float,
        besides: int = 0,
    ) -> None:
        super().__init__(symbols, cell, size, layers, embedding)
        self.add_cells(embedding + besides, gate_bias)
        self.dropout = nn.Dropout(dropout)
        self.project = nn.Linear(size, symbols)

    def write(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """Maps `(batch, inputs)` and a state to scores `(batch, symbols)` and the next state of the cells."""
        hidden, carried = self.advance(inputs, state)
        return self.project(self.dropout(hidden)), carried

    def step(
        self, symbols: Tensor, memory: Tensor | None, keys: Tensor | None, mask: Tensor | None, state: State
    ) -> tuple[Tensor, Tensor | None, State]:
        """Emits one symbol a row; see `StepDecoder.step`."""
        scores, carried = self.write(self.embedding(symbols), state)
        return scores, None, carried


class FlattenHead(VectorDecoder):
    """The whole feature map, flattened, starts the decoder.

    s_0 = tanh(W vec(F) + b), where F are the features of a canvas of fixed width; a shorter strip is blank from its end
    on. s_t = cell(E y_{t-1}, s_{t-1}), P(y_t) = softmax(O s_t).

    Every place of the canvas has weights of its own: W grows with the canvas, and a text that was never seen at a place
    is not read there.

    Args:
        features: Size of the encoder's features.
        canvas: Frames of the canvas.
        symbols: See `VectorDecoder`, as all that follow.
        cell: Kind of cell.
        size: Size of the state of each layer.
        layers: Number of layers; W starts them all.
        embedding: Size of the symbol embedding.
        dropout: Share zeroed before the output layer while training.
        gate_bias: Initial bias of the gate that keeps the state.
    """

    def __init__(
        self,
        features: int,
        canvas: int,
        symbols: int,
        cell: Cell,
        size: int,
        layers: int,
        embedding: int,
        dropout: float,
        gate_bias: float,
    ) -> None:
        super().__init__(symbols, cell, size, layers, embedding, dropout, gate_bias)
        self.canvas = canvas
        self.initial = nn.Linear(canvas * features, size * layers)

    def begin(self, memory: Tensor, lengths: Tensor) -> tuple[Tensor | None, State]:
        """Pads or cuts the frames to the canvas, and starts the cells; see `StepDecoder.begin`."""
        # Features beyond a strip's end are zero, so padding them is padding the strip. What a batch has beyond the
        # canvas is padding too: wider strips are refused before they come here.
        canvas = functional.pad(memory, (0, 0, 0, self.canvas))[:, : self.canvas]  # (batch, canvas, features)
        return None, self.start_cells(torch.tanh(self.initial(canvas.flatten(1))))


class ImageFirstHead(VectorDecoder):
    """The image vector is the first input, before the start symbol, and is never shown again.

    Vinyals et al. 2015, "Show and Tell": x_{-1} = W mean(h) + b; x_t = E y_t; s_t = cell(x_t, s_{t-1}) from
    s_{-2} = 0; P(y_{t+1}) = softmax(O s_t).

    Args:
        features: Size of the encoder's features.
        symbols: See `VectorDecoder`, as all that follow.
        cell: Kind of cell.
        size: Size of the state of each layer.
        layers: Number of layers.
        embedding: Size of the symbol embedding, and so of the image vector.
        dropout: Share zeroed before the output layer while training.
        gate_bias: Initial bias of the gate that keeps the state.
    """

    def __init__(
        self,
        features: int,
        symbols: int,
        cell: Cell,
        size: int,
        layers: int,
        embedding: int,
        dropout: float,
        gate_bias: float,
    ) -> None:
        super().__init__(symbols, cell, size, layers, embedding, dropout, gate_bias)
        self.image = nn.Linear(features, embedding)

    def begin(self, memory: Tensor, lengths: Tensor) -> tuple[Tensor | None, State]:
        """Shows the image vector to the cells; see `StepDecoder.begin`."""
        image = self.image(mean_over_frames(memory, lengths)).float()  # (batch, embedding)
        nothing = self.start_cells(image.new_zeros(image.shape[0], self.size * self.layers))
        _, state = self.advance(image, nothing)
        return None, state


class ImageEveryStepHead(VectorDecoder):
    """The image vector is an input of every step, beside the symbol.

    Donahue et al. 2015, "Long-term Recurrent Convolutional Networks" (LRCN): v = W mean(h) + b; x_t = [E y_{t-1}; v];
    s_t = cell(x_t, s_{t-1}) from s_0 = 0; P(y_t) = softmax(O s_t).

    The state ends with `image`, the vector v, which never changes.

    Args:
        features: Size of the encoder's features.
        symbols: See `VectorDecoder`, as all that follow.
        cell: Kind of cell.
        size: Size of the state of each layer, and of the image vector.
        layers: Number of layers.
        embedding: Size of the symbol embedding.
        dropout: Share zeroed before the output layer while training.
        gate_bias: Initial bias of the gate that keeps the state.
    """

    further_states = ("image",)
    constant_states = frozenset(further_states)

    def __init__(
        self,
        features: int,
        symbols: int,
        cell: Cell,
        size: int,
        layers: int,
        embedding: int,
        dropout: float,
        gate_bias: float,
    ) -> None:
        super().__init__(symbols, cell, size, layers, embedding, dropout, gate_bias, besides=size)
        self.image = nn.Linear(features, size)

    def begin(self, memory: Tensor, lengths: Tensor) -> tuple[Tensor | None, State]:
        """Makes the image vector; the cells start at zero; see `StepDecoder.begin`."""
        image = self.image(mean_over_frames(memory, lengths)).float()  # (batch, size)
        return None, [*self.start_cells(image.new_zeros(image.shape[0], self.size * self.layers)), image]

    def step(
        self, symbols: Tensor, memory: Tensor | None, keys: Tensor | None, mask: Tensor | None, state: State
    ) -> tuple[Tensor, Tensor | None, State]:
        """Emits one symbol a row; see `StepDecoder.step`."""
        image = state[-1]
        scores, carried = self.write(torch.cat((self.embedding(symbols), image), dim=1), state)
        return scores, None, [*carried, image]


class PooledStateHead(VectorDecoder):
    """What a recurrent encoder knows at its end starts the decoder.

    Sutskever, Vinyals and Le 2014, "Sequence to Sequence Learning": v = h_T, the encoder's state after the strip's last
    true frame (of layers that read backwards: after its first, where they end); s_0 = tanh(W v + b);
    s_t = cell(E y_{t-1}, s_{t-1}); P(y_t) = softmax(O s_t).

    Args:
        features: Size of the encoder's features.
        backward: How many of them, the last ones, are of layers that read backwards.
        symbols: See `VectorDecoder`, as all that follow.
        cell: Kind of cell.
        size: Size of the state of each layer.
        layers: Number of layers; W starts them all.
        embedding: Size of the symbol embedding.
        dropout: Share zeroed before the output layer while training.
        gate_bias: Initial bias of the gate that keeps the state.
    """

    def __init__(
        self,
        features: int,
        backward: int,
        symbols: int,
        cell: Cell,
        size: int,
        layers: int,
        embedding: int,
        dropout: float,
        gate_bias: float,
    ) -> None:
        super().__init__(symbols, cell, size, layers, embedding, dropout, gate_bias)
        self.ahead = features - backward
        self.initial = nn.Linear(features, size * layers)

    def begin(self, memory: Tensor, lengths: Tensor) -> tuple[Tensor | None, State]:
        """Takes each direction's last state, and starts the cells; see `StepDecoder.begin`."""
        last = (lengths - 1).clamp(min=0)[:, None, None].expand(-1, 1, self.ahead)  # (batch, 1, ahead)
        ahead = memory[:, :, : self.ahead].gather(1, last).squeeze(1)  # (batch, ahead)
        vector = torch.cat((ahead, memory[:, 0, self.ahead :]), dim=1)  # (batch, features)
        return None, self.start_cells(torch.tanh(self.initial(vector)))
