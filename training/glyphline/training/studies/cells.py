"""Recurrent cells written out, several networks of one kind side by side.

Studies ask the same of many small networks: of several seeds, and of several initial biases. Their weights are stacked
along a first axis `networks`, and all of them advance in one batched matrix product, which is several times quicker
than one after the other. The equations are PyTorch's own, with its order of gates and its two bias vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from glyphline.training.networks.recurrent import Cell

GATES: dict[Cell, int] = {"rnn": 1, "gru": 3, "lstm": 4}
"""How many blocks of columns a cell's weights have: of an LSTM i, f, g, o; of a GRU r, z, n."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A kind of cell and how its memory gate starts.

    Attributes:
        name: What it is called in tables.
        cell: Kind of cell.
        bias: Initial value of the forget gate (LSTM) or update gate (GRU) in each of PyTorch's two bias vectors, so
            that the gate starts with twice that; None leaves both as PyTorch draws them.
    """

    name: str
    cell: Cell
    bias: float | None = None


VARIANTS = (
    Variant("RNN", "rnn"),
    Variant("LSTM default", "lstm"),
    Variant("LSTM bias 1", "lstm", 1.0),
    Variant("LSTM bias 3", "lstm", 3.0),
    Variant("GRU default", "gru"),
    Variant("GRU opened", "gru", 1.0),
)
"""The kinds that studies compare."""


class State(NamedTuple):
    """What a cell carries on: `hidden`, and of an LSTM `memory` (its cell state), each `(networks, batch, size)`."""

    hidden: Tensor
    memory: Tensor


class LstmStep(NamedTuple):
    """All that happens in a step of an LSTM, each `(networks, batch, size)`."""

    hidden: Tensor
    memory: Tensor
    input_gate: Tensor
    forget_gate: Tensor
    candidate: Tensor
    output_gate: Tensor


def rnn_step(projected: Tensor, hidden: Tensor, weights: Tensor) -> Tensor:
    """Advances plain cells: h' = tanh(U x + b + W h).

    Args:
        projected: The input's part with both biases `(networks, batch, size)`.
        hidden: `(networks, batch, size)`.
        weights: `(networks, size, size)`.

    Returns:
        The next `hidden`.
    """
    return torch.tanh(torch.baddbmm(projected, hidden, weights))


def gru_step(projected: Tensor, hidden: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
    """Advances GRUs: n = tanh(U x + b + r (W h + b')), h' = (1 - z) n + z h.

    Args:
        projected: The input's part with the first bias `(networks, batch, 3 * size)`.
        hidden: `(networks, batch, size)`.
        weights: `(networks, size, 3 * size)`.
        bias: The second bias `(networks, 1, 3 * size)`, which the reset gate scales in n.

    Returns:
        The next `hidden`.
    """
    size = hidden.shape[-1]
    recurrent = torch.baddbmm(bias, hidden, weights)  # (networks, batch, 3 * size)
    gates = torch.sigmoid(projected[..., : 2 * size] + recurrent[..., : 2 * size])
    reset, update = gates.chunk(2, dim=-1)
    candidate = torch.tanh(torch.addcmul(projected[..., 2 * size :], reset, recurrent[..., 2 * size :]))
    return torch.lerp(candidate, hidden, update)


def lstm_step(projected: Tensor, state: State, weights: Tensor) -> LstmStep:
    """Advances LSTMs: c' = f c + i g, h' = o tanh(c').

    Args:
        projected: The input's part with both biases `(networks, batch, 4 * size)`.
        state: The state before.
        weights: `(networks, size, 4 * size)`.
    """
    sums = torch.baddbmm(projected, state.hidden, weights).chunk(4, dim=-1)
    input_gate, forget_gate, output_gate = (torch.sigmoid(sums[index]) for index in (0, 1, 3))
    candidate = torch.tanh(sums[2])
    memory = torch.addcmul(forget_gate * state.memory, input_gate, candidate)
    return LstmStep(output_gate * torch.tanh(memory), memory, input_gate, forget_gate, candidate, output_gate)


class StackedCells(nn.Module):
    """Untrained networks of one layer of one kind of cell, drawn as PyTorch draws them.

    Args:
        cell: Kind of cell.
        inputs: Size of the input.
        size: Size of the state.
        seeds: A seed a network; two of one seed differ in nothing but their memory gate's biases.
        biases: For each network, as in `Variant.bias`.
        dtype: Type of the weights.
    """

    def __init__(
        self,
        cell: Cell,
        inputs: int,
        size: int,
        seeds: Sequence[int],
        biases: Sequence[float | None] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.cell: Cell = cell
        self.size = size
        self.networks = len(seeds)
        columns = GATES[cell] * size
        drawn = [
            draw_uniform(seed, [(inputs, columns), (size, columns), (1, columns), (1, columns)], size) for seed in seeds
        ]
        stacked = [torch.stack(parts).to(dtype) for parts in zip(*drawn, strict=True)]
        for network, bias in enumerate(biases or [None] * len(seeds)):
            if bias is not None and cell != "rnn":
                for vector in stacked[2:]:
                    vector[network, :, size : 2 * size] = bias  # i, F, g, o and r, Z, n
        self.input_weights, self.weights, self.input_bias, self.bias = (nn.Parameter(part) for part in stacked)

    def project(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Maps inputs `(networks, batch, time, inputs)` to what a step needs of them, one tensor a step."""
        bias = self.input_bias if self.cell == "gru" else self.input_bias + self.bias
        networks, batch, time, _ = inputs.shape
        rows = inputs.transpose(1, 2).reshape(networks, time * batch, -1)
        projected = torch.baddbmm(bias, rows, self.input_weights)
        return projected.view(networks, time, batch, -1).unbind(1)

    def start(self, batch: int) -> State:
        """Returns the state before the first step, all zero."""
        zeros = self.weights.new_zeros(self.networks, batch, self.size)
        return State(zeros, zeros)

    def step(self, projected: Tensor, state: State) -> State:
        """Advances all networks by a step; see `project`."""
        if self.cell == "lstm":
            after = lstm_step(projected, state, self.weights)
            return State(after.hidden, after.memory)
        if self.cell == "gru":
            return State(gru_step(projected, state.hidden, self.weights, self.bias), state.memory)
        return State(rnn_step(projected, state.hidden, self.weights), state.memory)

    def forward(self, inputs: Tensor, state: State | None = None) -> tuple[list[Tensor], State]:
        """Reads sequences.

        Args:
            inputs: `(networks, batch, time, inputs)`.
            state: State to start from, or None for zero.

        Returns:
            `hidden` after each step, and the last state.
        """
        state = self.start(inputs.shape[1]) if state is None else state
        outputs = []
        for projected in self.project(inputs):
            state = self.step(projected, state)
            outputs.append(state.hidden)
        return outputs, state

    def trace(self, inputs: Tensor) -> list[LstmStep]:
        """Reads sequences `(networks, batch, time, inputs)` with LSTMs and keeps all that happens in each step."""
        assert self.cell == "lstm"
        state, steps = self.start(inputs.shape[1]), []
        for projected in self.project(inputs):
            steps.append(lstm_step(projected, state, self.weights))
            state = State(steps[-1].hidden, steps[-1].memory)
        return steps


class StackedLinear(nn.Module):
    """A linear layer for each of several networks, drawn as PyTorch draws them."""

    def __init__(self, inputs: int, outputs: int, seeds: Sequence[int]) -> None:
        super().__init__()
        drawn = [draw_uniform(10_000 + seed, [(inputs, outputs), (1, outputs)], inputs) for seed in seeds]
        self.weights, self.bias = (nn.Parameter(torch.stack(parts)) for parts in zip(*drawn, strict=True))

    def forward(self, features: Tensor) -> Tensor:
        """Maps `(networks, rows, inputs)` to `(networks, rows, outputs)`."""
        return torch.baddbmm(self.bias, features, self.weights)


def draw_uniform(seed: int, shapes: Sequence[tuple[int, ...]], size: int) -> list[Tensor]:
    """Draws tensors from the range ±1 / √size, as PyTorch draws the weights of its recurrent layers."""
    generator = torch.Generator().manual_seed(seed)
    return [(2 * torch.rand(shape, generator=generator) - 1) / math.sqrt(size) for shape in shapes]


def clip_each(parameters: Sequence[nn.Parameter], limit: float) -> None:
    """Clips the gradient of each network by its own norm; all parameters have the first axis `networks`."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    squares = torch.stack([gradient.flatten(1).square().sum(dim=1) for gradient in gradients]).sum(dim=0)
    factors = (limit / (squares.sqrt() + 1e-6)).clamp(max=1.0)  # (networks,)
    for gradient in gradients:
        gradient.mul_(factors.view(-1, *(1 for _ in gradient.shape[1:])))
