"""Weights of recurrent layers in half the space: kept as fp16, computed with as fp32.

They are most of a bundle. Rounded before the graphs are written, they are the same in torch and in ONNX Runtime, which
turns them back when it loads a graph: nothing gets slower.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

_RECURRENT = {"LSTM", "GRU", "RNN"}


def halve_recurrent_weights(path: Path) -> None:
    """Keeps the weights of a graph's recurrent layers as fp16.

    Args:
        path: File of the graph; it is replaced.
    """
    model = onnx.load(path)
    graph = model.graph
    wanted = {name for node in graph.node if node.op_type in _RECURRENT for name in node.input[1:3]}
    casts = []
    for weights in graph.initializer:
        name = weights.name
        if name in wanted and weights.data_type == onnx.TensorProto.FLOAT:
            values = onnx.numpy_helper.to_array(weights).astype(np.float16)
            weights.CopyFrom(onnx.numpy_helper.from_array(values, f"{name}_fp16"))
            casts.append(
                onnx.helper.make_node("Cast", [weights.name], [name], f"{name}_cast", to=onnx.TensorProto.FLOAT)
            )
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(model, path)
