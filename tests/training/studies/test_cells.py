import math

import pytest
import torch
from torch import nn

from glyphline.training.networks.recurrent import CELLS, Cell
from glyphline.training.studies.cells import GATES, StackedCells, StackedLinear, clip_each


def torch_layer(cells: StackedCells, network: int) -> nn.RNNBase:
    """Returns torch's own layer with the weights of one of the networks."""
    layer: nn.RNNBase = CELLS[cells.cell](cells.input_weights.shape[1], cells.size, batch_first=True).double()
    weights = (cells.input_weights[network].T, cells.weights[network].T, cells.input_bias[network], cells.bias[network])
    with torch.no_grad():
        for parameter, value in zip(layer.parameters(), weights, strict=True):
            parameter.copy_(value.view_as(parameter))
    return layer


@pytest.mark.parametrize("cell", CELLS)
def test_written_out_cells_are_torchs(cell: Cell) -> None:
    cells = StackedCells(cell, 3, 5, seeds=[4, 9], biases=[None, 1.0], dtype=torch.float64)
    inputs = torch.randn(2, 6, 7, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    outputs, state = cells(inputs)
    together = torch.autograd.grad(state.hidden.square().sum(), [cells.weights, cells.bias])
    for network in range(2):
        layer = torch_layer(cells, network)
        right, _ = layer(inputs[network])
        torch.testing.assert_close(torch.stack(outputs, dim=2)[network], right)
        own = dict(zip(("weight", "bias"), together, strict=True))
        right[:, -1].square().sum().backward()
        for name, gradient in own.items():
            parameter = layer.get_parameter(f"{name}_hh_l0").grad
            assert parameter is not None
            torch.testing.assert_close(gradient[network].T.reshape(parameter.shape), parameter)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_a_bias_opens_the_memory_gate_in_both_vectors(cell: Cell) -> None:
    plain, opened = (StackedCells(cell, 2, 4, [3], [bias]) for bias in (None, 1.5))
    for before, after in ((plain.input_bias, opened.input_bias), (plain.bias, opened.bias)):
        blocks = after.view(GATES[cell], 4)
        assert (blocks[1] == 1.5).all()
        others = [block for block in range(GATES[cell]) if block != 1]
        torch.testing.assert_close(blocks[others], before.view(GATES[cell], 4)[others])
    assert plain.weights.abs().max() <= 1 / math.sqrt(4)


def test_a_trace_is_what_happens() -> None:
    cells = StackedCells("lstm", 2, 4, [3])
    inputs = torch.randn(1, 2, 5, 2, generator=torch.Generator().manual_seed(0))
    steps = cells.trace(inputs)
    outputs, _ = cells(inputs)
    memory = torch.zeros_like(steps[0].memory)
    for step, hidden in zip(steps, outputs, strict=True):
        memory = step.forget_gate * memory + step.input_gate * step.candidate
        torch.testing.assert_close(step.memory, memory)
        torch.testing.assert_close(hidden, step.output_gate * torch.tanh(memory))


def test_each_network_is_clipped_by_its_own_norm() -> None:
    layer = StackedLinear(3, 2, seeds=[0, 1])
    layer.weights.grad = torch.ones_like(layer.weights)
    layer.bias.grad = torch.zeros_like(layer.bias)
    layer.weights.grad[0] *= 10
    layer.weights.grad[1] *= 0.01
    clip_each(list(layer.parameters()), limit=1.0)
    assert layer.weights.grad[0].norm() == pytest.approx(1.0, rel=1e-4)
    assert (layer.weights.grad[1] == 0.01).all()
