"""The attention head: a recurrent decoder that looks at one place of the strip for every symbol.

Bahdanau, Cho and Bengio 2015, "Neural Machine Translation by Jointly Learning to Align and Translate", with the
location term of Chorowski et al. 2015, "Attention-Based Models for Speech Recognition", which keeps the decoder's place
on strings that are longer than those it was trained on.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from glyphline.training.networks.decoder import State, StepDecoder
from glyphline.training.networks.recurrent import Cell

__all__ = ["AdditiveAttention", "AttentionHead"]


class AdditiveAttention(nn.Module):
    """Additive attention with location awareness.

    e_{t,j} = vᵀ tanh(W s_{t-1} + V h_j + U f_{t,j}), where f = F * (a_{t-1}, Σ_{i<t} a_i) is a convolution over where
    the decoder looked last and over all that it has looked at; a_t = softmax(e_t) over the valid frames. With a reach,
    over those of them that are no further than it from the last place, Σ_j j a_{t-1,j} (the windowing of Chorowski et
    al., section 2.3); the first look is free.

    Args:
        features: Size of the encoder's features h.
        query: Size of the decoder's state s.
        size: Size of the inner layer.
        filters: Number of location filters F; 0 leaves the location term out.
        reach: Frames from the last place within which it looks; 0 is anywhere.
        width: Width of each filter, in frames (odd).
    """

    def __init__(self, features: int, query: int, size: int, filters: int = 8, reach: int = 0, width: int = 15) -> None:
        super().__init__()
        self.reach = reach
        self.keys = nn.Linear(features, size)  # V
        self.query = nn.Linear(query, size, bias=False)  # W
        self.filters = nn.Conv1d(2, filters, width, padding=width // 2, bias=False) if filters else None  # F
        self.location = nn.Linear(filters, size, bias=False) if filters else None  # U
        self.energy = nn.Linear(size, 1, bias=False)  # v

    def forward(
        self, state: Tensor, memory: Tensor, keys: Tensor, mask: Tensor, previous: Tensor, covered: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Looks once.

        Args:
            state: Decoder state s_{t-1} `(batch, query)`.
            memory: Encoder features h `(batch, frames, features)`.
            keys: V h `(batch, frames, size)`, computed once a strip.
            mask: Valid frames `(batch, frames)`.
            previous: a_{t-1} `(batch, frames)`.
            covered: Σ_{i<t} a_i `(batch, frames)`.

        Returns:
            Context Σ_j a_{t,j} h_j `(batch, features)` and weights a_t `(batch, frames)`.
        """
        inner = keys + self.query(state).unsqueeze(1)  # (batch, frames, size)
        if self.filters is not None and self.location is not None:
            location = self.filters(torch.stack((previous, covered), dim=1)).transpose(1, 2)  # (batch, frames, filters)
            inner = inner + self.location(location)
        energy = self.energy(torch.tanh(inner)).squeeze(2).float()
        if self.reach:
            mask = mask & self._within_reach(previous)
        energy = energy.masked_fill(~mask, -1e9)  # finite, so that a row without any frame gives no NaN
        weights = torch.softmax(energy, dim=1) * mask
        context = torch.bmm(weights.unsqueeze(1).to(memory.dtype), memory).squeeze(1)
        return context, weights

    def _within_reach(self, previous: Tensor) -> Tensor:
        """Tells the frames `(batch, frames)` that are within reach of the last place; all, where there was none."""
        frames = torch.arange(previous.shape[1], device=previous.device, dtype=previous.dtype)
        place = (previous * frames).sum(dim=1, keepdim=True)  # (batch, 1)
        looked = previous.sum(dim=1, keepdim=True) > 0
        return ((frames - place).abs() <= self.reach) | ~looked


class AttentionHead(StepDecoder):
    """Recurrent decoder over encoder frames.

    s_0 = tanh(W mean(h)), a_t and c_t as `AdditiveAttention` says, s_t = cell([E y_{t-1}; c_t], s_{t-1}),
    P(y_t) = softmax(O [s_t; c_t]). With several layers the first asks where to look and the last is s_t of the output.

    The state ends with where it looked: `previous` at the last step and `covered` in all, each `(batch, frames)`.

    Args:
        features: Size of the encoder's features.
        symbols: Outputs, the end symbol at 0 included; input `symbols` is the start.
        cell: Kind of cell.
        size: Size of the decoder's state.
        attention: Size of the attention's inner layer.
        filters: Number of its location filters.
        reach: Frames within which it looks next; 0 is anywhere.
        embedding: Size of the symbol embedding E.
        dropout: Share zeroed before the output layer while training.
        gate_bias: Initial bias of the gate that keeps the state.
        layers: Number of layers.
        carries_state: Whether the cells' state is carried on. Where not, each step starts from s_0: a symbol is read
            from where it stands and the symbol before it, whatever the length of the strip.
    """

    looks_at_frames = True
    further_states = ("previous", "covered")
    frame_states = frozenset(further_states)

    def __init__(
        self,
        features: int,
        symbols: int,
        cell: Cell = "gru",
        size: int = 192,
        attention: int = 96,
        filters: int = 8,
        reach: int = 0,
        embedding: int = 32,
        dropout: float = 0.1,
        gate_bias: float = 1.0,
        layers: int = 1,
        carries_state: bool = True,
    ) -> None:
        super().__init__(symbols, cell, size, layers, embedding)
        self.carries_state = carries_state
        self.attention = AdditiveAttention(features, size, attention, filters, reach)
        self.add_cells(embedding + features, gate_bias)
        self.initial = nn.Linear(features, size * layers)
        self.dropout = nn.Dropout(dropout)
        self.project = nn.Linear(size + features, symbols)

    def begin(self, memory: Tensor, lengths: Tensor) -> tuple[Tensor, State]:
        """Returns keys `(batch, frames, attention)` and the initial state; see `StepDecoder.begin`."""
        mean = memory.sum(dim=1) / lengths.clamp(min=1).unsqueeze(1).to(memory.dtype)  # (batch, features)
        nowhere = torch.zeros_like(memory[:, :, 0], dtype=torch.float32)  # (batch, frames)
        state = self.start_cells(torch.tanh(self.initial(mean)))
        # A copy, as the exporter takes one tensor given twice for one input.
        return self.attention.keys(memory), [*state, nowhere, nowhere.clone()]

    def step(
        self, symbols: Tensor, memory: Tensor | None, keys: Tensor | None, mask: Tensor | None, state: State
    ) -> tuple[Tensor, Tensor, State]:
        """Emits one symbol a row; see `StepDecoder.step`."""
        assert memory is not None
        assert keys is not None
        assert mask is not None
        previous, covered = state[-2:]
        context, weights = self.attention(state[0], memory, keys, mask, previous, covered)
        inputs = torch.cat((self.embedding(symbols).to(context.dtype), context), dim=1)
        hidden, carried = self.advance(inputs, state)
        scores = self.project(self.dropout(torch.cat((hidden, context.to(hidden.dtype)), dim=1)))
        if not self.carries_state:
            carried = [cells.clone() for cells in state[:-2]]  # an output of its own for the exporter
        return scores, weights, [*carried, weights, covered + weights]
