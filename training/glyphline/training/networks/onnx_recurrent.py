"""Recurrent layers as ONNX operators with sequence lengths, for export.

torch's own export of recurrent layers either fixes the number of frames or ignores lengths. The ONNX operators `RNN`,
`GRU` and `LSTM` take both directions' weights and each sequence's length, which is what `RecurrentLayer` computes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from glyphline.training.networks.recurrent import Cell, RecurrentLayer, RecurrentLayers

OPSET = 20

# torch's gates in the order of the ONNX operator: LSTM i, f, g, o → i, o, f, c; GRU r, z, n → z, r, h.
GATES: dict[Cell, tuple[int, ...]] = {"rnn": (0,), "gru": (1, 0, 2), "lstm": (0, 3, 1, 2)}


class OnnxRecurrentLayer(nn.Module):
    """A `RecurrentLayer` that exports as one ONNX operator.

    Args:
        layer: The trained layer.
    """

    def __init__(self, layer: RecurrentLayer) -> None:
        super().__init__()
        self.cell: Cell = layer.cell
        self.size = layer.size
        self.directions = len(layer.directions)

        def stacked(name: str) -> Tensor:
            gates = GATES[layer.cell]
            directions = [getattr(direction, name).detach() for direction in layer.directions]
            return torch.stack([torch.cat([part.chunk(len(gates))[gate] for gate in gates]) for part in directions])

        self.weights: Tensor
        self.recurrence: Tensor
        self.biases: Tensor
        self.register_buffer("weights", stacked("weight_ih_l0"))  # (directions, gates * size, inputs)
        self.register_buffer("recurrence", stacked("weight_hh_l0"))  # (directions, gates * size, size)
        self.register_buffer("biases", torch.cat((stacked("bias_ih_l0"), stacked("bias_hh_l0")), dim=1))

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Maps `(batch, frames, inputs)` and lengths `(batch,)` to `(batch, frames, directions * size)`."""
        inputs = features.transpose(0, 1)
        frames, batch = inputs.shape[:2]
        reset = {"linear_before_reset": 1} if self.cell == "gru" else {}
        output = torch.onnx.ops.symbolic(
            self.cell.upper(),
            (inputs, self.weights, self.recurrence, self.biases, lengths.to(torch.int32)),
            {"direction": "bidirectional" if self.directions == 2 else "forward", "hidden_size": self.size, **reset},
            dtype=inputs.dtype,
            shape=(frames, self.directions, batch, self.size),
            version=OPSET,
        )
        return output.permute(2, 0, 1, 3).reshape(batch, frames, self.directions * self.size)


def replace_recurrent(layers: RecurrentLayers) -> None:
    """Replaces each layer by its exporting twin, in place; only a copy of a network should be given."""
    layers.layers = nn.ModuleList(
        OnnxRecurrentLayer(layer) for layer in layers.layers if isinstance(layer, RecurrentLayer)
    )
