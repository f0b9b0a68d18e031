"""What all step-wise heads share: they write a text symbol by symbol, each step given the symbol before.

A head is told apart by what of the strip starts its decoder and by what it sees at each step; cells, layers, teacher
forcing, scheduled sampling, truncated back-propagation and greedy reading are the same for all, and here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from glyphline.training.networks.masking import valid_mask
from glyphline.training.networks.recurrent import Cell, open_gates

State = list[Tensor]
"""What a decoder carries from step to step, one tensor for each of `StepDecoder.state_names`."""

STEP_CELLS: dict[Cell, type[nn.RNNCell] | type[nn.GRUCell] | type[nn.LSTMCell]] = {
    "rnn": nn.RNNCell,
    "gru": nn.GRUCell,
    "lstm": nn.LSTMCell,
}


class StepDecoder(nn.Module, ABC):
    """Base of the step-wise heads.

    The state begins with `hidden` (and `cell` for LSTM), each `(batch, size)`, then `hidden_2`, … of further layers;
    after them comes what a subclass needs besides, as it says in `further_states`.

    Args:
        symbols: Outputs, the end symbol at 0 included; input `symbols` is the start.
        cell: Kind of cell.
        size: Size of the state of each layer.
        layers: Number of layers.
        embedding: Size of the symbol embedding E.
    """

    looks_at_frames: ClassVar[bool] = False
    """Whether a step sees the encoder's frames: then it tells where it looked, and symbols have places."""

    further_states: ClassVar[tuple[str, ...]] = ()
    """Names of the states after the cells'."""

    frame_states: ClassVar[frozenset[str]] = frozenset()
    """Those of them that are `(batch, frames)`; all other states are `(batch, some size)`."""

    constant_states: ClassVar[frozenset[str]] = frozenset()
    """Those of them that never change: inputs of every step, which no cut of the gradient concerns."""

    def __init__(self, symbols: int, cell: Cell, size: int, layers: int, embedding: int) -> None:
        super().__init__()
        self.symbols = symbols
        self.start = symbols
        self.end = 0
        self.size = size
        self.layers = layers
        self.cell_kind: Cell = cell
        self.embedding = nn.Embedding(symbols + 1, embedding)

    def add_cells(self, inputs: int, gate_bias: float) -> None:
        """Adds the cells, of which the first takes inputs of size `inputs` and the others the state below them."""
        make = STEP_CELLS[self.cell_kind]
        self.cell = make(inputs, self.size)
        self.upper = nn.ModuleList(make(self.size, self.size) for _ in range(self.layers - 1))
        for cell in (self.cell, *self.upper):
            assert isinstance(cell, nn.RNNCellBase)
            open_gates(cell, gate_bias)

    @property
    def state_names(self) -> list[str]:
        """Names of the tensors of a `State`, in order."""
        kinds = ["hidden", "cell"] if self.cell_kind == "lstm" else ["hidden"]
        layers = ["", *(f"_{layer}" for layer in range(2, self.layers + 1))]
        return [f"{kind}{layer}" for layer in layers for kind in kinds] + list(self.further_states)

    def start_cells(self, hidden: Tensor) -> State:
        """Returns the state of the cells from the hidden states of all layers `(batch, layers * size)`."""
        state = []
        for layer in hidden.float().chunk(self.layers, dim=1):  # (batch, size)
            state.append(layer)
            if self.cell_kind == "lstm":
                state.append(torch.zeros_like(layer))
        return state

    def advance(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """Runs the cells once.

        Args:
            inputs: Input of the first layer `(batch, inputs)`.
            state: A whole state; what comes after the cells' part is not looked at.

        Returns:
            Hidden state of the last layer `(batch, size)`, and the state of the cells.
        """
        carried: State = []
        for index, cell in enumerate((self.cell, *self.upper)):
            if self.cell_kind == "lstm":
                before = (state[2 * index].to(inputs.dtype), state[2 * index + 1].to(inputs.dtype))
                inputs, memory = cell(inputs, before)
                carried += [inputs, memory]
            else:
                inputs = cell(inputs, state[index].to(inputs.dtype))
                carried.append(inputs)
        return inputs, carried

    @abstractmethod
    def begin(self, memory: Tensor, lengths: Tensor) -> tuple[Tensor | None, State]:
        """Prepares decoding.

        Args:
            memory: Encoder features `(batch, frames, features)`, zero beyond the valid frames.
            lengths: Valid frames `(batch,)`.

        Returns:
            What a step needs of every frame, computed once a strip `(batch, frames, attention)`, or None; and the
            initial state.
        """

    @abstractmethod
    def step(
        self, symbols: Tensor, memory: Tensor | None, keys: Tensor | None, mask: Tensor | None, state: State
    ) -> tuple[Tensor, Tensor | None, State]:
        """Emits one symbol a row.

        Args:
            symbols: Last symbols `(batch,)`.
            memory: `(batch, frames, features)`; a head that does not look at frames needs none.
            keys: From `begin`.
            mask: Valid frames `(batch, frames)`; a head that does not look at frames needs none.
            state: State after the last symbol.

        Returns:
            Scores before softmax `(batch, symbols)`; where it looked `(batch, frames)`, or None; the next state.
        """

    def forward(
        self,
        memory: Tensor,
        lengths: Tensor,
        inputs: Tensor,
        *,
        sampling: float = 0.0,
        restarts: float = 0.0,
        cut: int = 0,
    ) -> Tensor:
        """Decodes with given inputs (teacher forcing).

        Args:
            memory: `(batch, frames, features)`.
            lengths: Valid frames `(batch,)`.
            inputs: Start symbol, then the label `(batch, steps)`.
            sampling: Share of the label's symbols that are replaced by what the head itself would have written, the end
                left out (scheduled sampling: Bengio et al. 2015).
            restarts: Share of the steps before which a row's cells are put back to their first state, while the rest of
                the state, as where an attention head looked, stays: it cannot count symbols, and must see its place.
            cut: Steps after which the state is carried on without its gradient (truncated back-propagation through
                time); 0 never cuts it. Scores do not depend on it.

        Returns:
            Scores before softmax `(batch, steps, symbols)`.
        """
        mask = valid_mask(lengths, memory.shape[1])
        keys, state = self.begin(memory, lengths)
        first = state[: len(state) - len(self.further_states)]
        own = torch.rand(inputs.shape, device=inputs.device) < sampling if sampling > 0 else None
        anew = torch.rand(inputs.shape, device=inputs.device) < restarts if restarts > 0 else None
        scores: list[Tensor] = []
        for step in range(inputs.shape[1]):
            symbols = inputs[:, step]  # (batch,)
            if own is not None and scores:
                symbols = torch.where(own[:, step], scores[-1].detach()[:, 1:].argmax(dim=1) + 1, symbols)
            if anew is not None and step:
                row = anew[:, step, None]
                cells = [torch.where(row, begun, now) for begun, now in zip(first, state[: len(first)], strict=True)]
                state = [*cells, *state[len(first) :]]
            if cut and step and step % cut == 0:
                state = self.cut_gradient(state)
            score, _, state = self.step(symbols, memory, keys, mask, state)
            scores.append(score)
        return torch.stack(scores, dim=1)

    def cut_gradient(self, state: State) -> State:
        """Returns the same state, through which no gradient flows back."""
        pairs = zip(self.state_names, state, strict=True)
        return [tensor if name in self.constant_states else tensor.detach() for name, tensor in pairs]

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


def decoder_loss(scores: Tensor, labels: Tensor, label_lengths: Tensor, smoothing: float) -> Tensor:
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
