"""The attention head: a recurrent decoder that looks at one place of the strip for every symbol.

Bahdanau, Cho and Bengio 2015, "Neural Machine Translation by Jointly Learning to Align and Translate", with the
location term of Chorowski et al. 2015, "Attention-Based Models for Speech Recognition", which keeps the decoder's place
on strings that are longer than those it was trained on.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from glyphline.training.networks.masking import valid_mask
from glyphline.training.networks.recurrent import open_gates

State = list[Tensor]
"""What a decoder carries from step to step: `hidden` and, for LSTM, `cell`, each `(batch, size)`; then where it looked,
`previous` at the last step and `covered` in all, each `(batch, frames)`."""


class AdditiveAttention(nn.Module):
    """Additive attention with location awareness.

    e_{t,j} = vᵀ tanh(W s_{t-1} + V h_j + U f_{t,j}), where f = F * (a_{t-1}, Σ_{i<t} a_i) is a convolution over where
    the decoder looked last and over all that it has looked at; a_t = softmax(e_t) over the valid frames.

    Args:
        features: Size of the encoder's features h.
        query: Size of the decoder's state s.
        size: Size of the inner layer.
        filters: Number of location filters F.
        reach: Width of each filter, in frames (odd).
    """

    def __init__(self, features: int, query: int, size: int, filters: int = 8, reach: int = 15) -> None:
        super().__init__()
        self.keys = nn.Linear(features, size)  # V
        self.query = nn.Linear(query, size, bias=False)  # W
        self.filters = nn.Conv1d(2, filters, reach, padding=reach // 2, bias=False)  # F
        self.location = nn.Linear(filters, size, bias=False)  # U
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
        location = self.filters(torch.stack((previous, covered), dim=1)).transpose(1, 2)  # (batch, frames, filters)
        inner = torch.tanh(keys + self.query(state).unsqueeze(1) + self.location(location))  # (batch, frames, size)
        energy = self.energy(inner).squeeze(2).float()
        energy = energy.masked_fill(~mask, -1e9)  # finite, so that a row without any frame gives no NaN
        weights = torch.softmax(energy, dim=1) * mask
        context = torch.bmm(weights.unsqueeze(1).to(memory.dtype), memory).squeeze(1)
        return context, weights


class AttentionHead(nn.Module):
    """One-layer GRU or LSTM decoder over encoder frames.

    s_t = cell([E y_{t-1}; c_t], s_{t-1}), P(y_t) = softmax(O [s_t; c_t]).

    Args:
        features: Size of the encoder's features.
        symbols: Outputs, the end symbol at 0 included; input `symbols` is the start.
        cell: Kind of cell.
        size: Size of the decoder's state.
        attention: Size of the attention's inner layer.
        embedding: Size of the symbol embedding E.
        dropout: Share zeroed before the output layer while training.
        gate_bias: Initial bias of the gate that keeps the state.
    """

    def __init__(
        self,
        features: int,
        symbols: int,
        cell: Literal["gru", "lstm"] = "gru",
        size: int = 192,
        attention: int = 96,
        embedding: int = 32,
        dropout: float = 0.1,
        gate_bias: float = 1.0,
    ) -> None:
        super().__init__()
        self.symbols = symbols
        self.start = symbols
        self.end = 0
        self.size = size
        self.cell_kind = cell
        self.embedding = nn.Embedding(symbols + 1, embedding)
        self.attention = AdditiveAttention(features, size, attention)
        cell_type = nn.GRUCell if cell == "gru" else nn.LSTMCell
        self.cell = cell_type(embedding + features, size)
        self.initial = nn.Linear(features, size)
        self.dropout = nn.Dropout(dropout)
        self.project = nn.Linear(size + features, symbols)
        open_gates(self.cell, gate_bias)

    @property
    def state_names(self) -> list[str]:
        """Names of the tensors of a `State`, in order."""
        return ["hidden", *(["cell"] if self.cell_kind == "lstm" else []), "previous", "covered"]

    def begin(self, memory: Tensor, lengths: Tensor) -> tuple[Tensor, State]:
        """Prepares decoding.

        Args:
            memory: Encoder features `(batch, frames, features)`, zero beyond the valid frames.
            lengths: Valid frames `(batch,)`.

        Returns:
            Keys `(batch, frames, attention)` and the initial state; s_0 = tanh(W mean(h)).
        """
        mean = memory.sum(dim=1) / lengths.clamp(min=1).unsqueeze(1).to(memory.dtype)
        hidden = torch.tanh(self.initial(mean)).float()
        nowhere = torch.zeros_like(memory[:, :, 0], dtype=torch.float32)
        state = [hidden, nowhere, nowhere.clone()]  # the exporter takes one tensor given twice for one input
        if self.cell_kind == "lstm":
            state.insert(1, torch.zeros_like(hidden))
        return self.attention.keys(memory), state

    def step(
        self, symbols: Tensor, memory: Tensor, keys: Tensor, mask: Tensor, state: State
    ) -> tuple[Tensor, Tensor, State]:
        """Emits one symbol a row.

        Args:
            symbols: Last symbols y_{t-1} `(batch,)`.
            memory: `(batch, frames, features)`.
            keys: `(batch, frames, attention)`.
            mask: Valid frames `(batch, frames)`.
            state: State after the last symbol.

        Returns:
            Scores before softmax `(batch, symbols)`, attention weights `(batch, frames)`, and the next state.
        """
        hidden, previous, covered = state[0], state[-2], state[-1]
        context, weights = self.attention(hidden, memory, keys, mask, previous, covered)
        inputs = torch.cat((self.embedding(symbols).to(context.dtype), context), dim=1)
        if self.cell_kind == "lstm":
            hidden, cell = self.cell(inputs, (hidden.to(inputs.dtype), state[1].to(inputs.dtype)))
            carried = [hidden, cell]
        else:
            hidden = self.cell(inputs, hidden.to(inputs.dtype))
            carried = [hidden]
        scores = self.project(self.dropout(torch.cat((hidden, context.to(hidden.dtype)), dim=1)))
        return scores, weights, [*carried, weights, covered + weights]

    def forward(self, memory: Tensor, lengths: Tensor, inputs: Tensor) -> Tensor:
        """Decodes with given inputs (teacher forcing).

        Args:
            memory: `(batch, frames, features)`.
            lengths: Valid frames `(batch,)`.
            inputs: Start symbol, then the label `(batch, steps)`.

        Returns:
            Scores before softmax `(batch, steps, symbols)`.
        """
        mask = valid_mask(lengths, memory.shape[1])
        keys, state = self.begin(memory, lengths)
        scores = []
        for step in range(inputs.shape[1]):
            score, _, state = self.step(inputs[:, step], memory, keys, mask, state)
            scores.append(score)
        return torch.stack(scores, dim=1)

    @torch.no_grad()
    def greedy(self, memory: Tensor, lengths: Tensor, longest: int) -> list[list[int]]:
        """Reads without teacher forcing, the likeliest symbol at each step.

        Args:
            memory: `(batch, frames, features)`.
            lengths: Valid frames `(batch,)`.
            longest: Greatest number of symbols.

        Returns:
            Symbols of each row, without the end.
        """
        mask = valid_mask(lengths, memory.shape[1])
        keys, state = self.begin(memory, lengths)
        batch = memory.shape[0]
        symbols = torch.full((batch,), self.start, dtype=torch.long, device=memory.device)
        running = torch.ones(batch, dtype=torch.bool, device=memory.device)
        readings: list[list[int]] = [[] for _ in range(batch)]
        for _ in range(longest):
            scores, _, state = self.step(symbols, memory, keys, mask, state)
            symbols = scores.argmax(dim=1)
            running &= symbols != self.end
            if not running.any():
                break
            for row in torch.nonzero(running).flatten().tolist():
                readings[row].append(int(symbols[row]))
        return readings


def attention_loss(scores: Tensor, labels: Tensor, label_lengths: Tensor, smoothing: float) -> Tensor:
    """Mean cross-entropy a symbol, the end included and padding left out.

    Args:
        scores: `(batch, longest + 1, symbols)`.
        labels: `(batch, longest)`, padded with anything.
        label_lengths: `(batch,)`.
        smoothing: Label smoothing in [0, 1).

    Returns:
        Scalar.
    """
    batch, longest = labels.shape
    targets = torch.full((batch, longest + 1), -100, dtype=torch.long, device=labels.device)
    real = valid_mask(label_lengths, longest)
    targets[:, :longest][real] = labels[real]
    targets[torch.arange(batch), label_lengths] = 0
    return functional.cross_entropy(
        scores.float().flatten(0, 1), targets.flatten(), ignore_index=-100, label_smoothing=smoothing
    )
