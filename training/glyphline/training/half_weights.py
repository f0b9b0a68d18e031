"""Weights in half the space: kept as fp16, computed with as fp32.

Weights are most of a bundle. Rounded before the graphs are written (`networks.rounding`), they are the same in torch
and in ONNX Runtime, which turns them back when it loads a graph: nothing gets slower.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

_RECURRENT = {"LSTM", "GRU", "RNN"}
_WEIGHED = _RECURRENT | {"Conv", "Gemm", "MatMul"}
_FEWEST = 256  # weights for which it is worth a node more


def halve_weights(path: Path, *, exactly: bool = True) -> None:
    """Keeps weights of a graph as fp16.

    Args:
        path: File of the graph; it is replaced.
        exactly: Whether only those that lose nothing by it.
    """
    model = onnx.load(path)
    graph = model.graph
    wanted = {
        name
        for node in graph.node
        if node.op_type in _WEIGHED
        for name in node.input[1 : 3 if node.op_type in _RECURRENT else 2]
    }
    casts = []
    for weights in graph.initializer:
        name = weights.name
        if name not in wanted or weights.data_type != onnx.TensorProto.FLOAT:
            continue
        values = onnx.numpy_helper.to_array(weights)
        with np.errstate(over="ignore"):
            halves = values.astype(np.float16)
        if values.size < _FEWEST or (exactly and not np.array_equal(halves.astype(np.float32), values)):
            continue
        weights.CopyFrom(onnx.numpy_helper.from_array(halves, f"{name}_fp16"))
        casts.append(onnx.helper.make_node("Cast", [weights.name], [name], f"{name}_cast", to=onnx.TensorProto.FLOAT))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(model, path)
