"""Writes the graphs of a bundle: which modules, with which inputs and outputs, through torch's exporter."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import onnx
import torch
from torch import Tensor, nn

from glyphline.training.errors import ExportError
from glyphline.training.networks.graphs import CTCGraph, DecoderStepGraph, EncoderGraph
from glyphline.training.networks.onnx_recurrent import OPSET
from glyphline.training.networks.recogniser import RecogniserNetwork

Head = Literal["ctc", "attention"]


@dataclass(frozen=True, slots=True)
class Graph:
    """One graph of a bundle.

    Attributes:
        role: Its role in the manifest.
        module: What is exported.
        inputs: Example inputs by name, in order; axis 0 is the batch.
        outputs: Names of the outputs, in order.
        dynamic: For each input, its axes besides the batch that vary, and their names.
    """

    role: str
    module: nn.Module
    inputs: dict[str, Tensor]
    outputs: list[str]
    dynamic: dict[str, dict[int, str]]


def make_graphs(network: RecogniserNetwork, head: Head, height: int) -> list[Graph]:
    """Returns the graphs of a head.

    Raises:
        ExportError: If the network was trained without that head.
    """
    images = torch.randint(0, 256, (3, 1, height, 96), dtype=torch.uint8)
    widths = torch.tensor([96, 60, 33])
    strips = {"images": images, "widths": widths}
    varying = {"images": {3: "width"}, "widths": {}}
    if head == "ctc":
        if network.ctc is None:
            raise ExportError("this network has no CTC head")
        module = CTCGraph(network.encoder, network.ctc).eval()
        return [Graph("network", module, strips, ["log_probabilities", "lengths"], varying)]
    if network.attention is None:
        raise ExportError("this network has no attention head")
    names = network.attention.state_names
    with torch.no_grad():
        memory, lengths = network.encoder(images, widths)
        keys, state = network.attention.begin(memory, lengths)
    encoder = EncoderGraph(network.encoder, network.attention).eval()
    step = DecoderStepGraph(network.attention).eval()
    inputs = {"symbols": torch.tensor([1, 2, 3]), "memory": memory, "keys": keys, "lengths": lengths}
    inputs |= dict(zip(names, state, strict=True))
    frames = {1: "frames"}
    dynamic = {name: dict(frames) if name in ("memory", "keys", "previous", "covered") else {} for name in inputs}
    following = [f"next_{name}" for name in names]
    return [
        Graph(
            "encoder", encoder, strips, ["memory", "keys", "lengths", *(f"initial_{name}" for name in names)], varying
        ),
        Graph("decoder_step", step, inputs, ["log_probabilities", "attention", *following], dynamic),
    ]


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps the exporter's chatter about its own internals away from the user."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [chatty.level for chatty in loggers]
    for chatty in loggers:
        chatty.setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            for chatty, level in zip(loggers, levels, strict=True):
                chatty.setLevel(level)


def write_graph(graph: Graph, path: Path) -> None:
    """Writes one graph as ONNX."""
    batch = torch.export.Dim.DYNAMIC
    shapes = [{0: batch, **dict.fromkeys(graph.dynamic[name], batch)} for name in graph.inputs]
    arguments: list[object] = list(graph.inputs.values())
    dynamic: list[object] = list(shapes)
    if graph.role == "decoder_step":  # the state is one list of tensors
        arguments, dynamic = [*arguments[:4], arguments[4:]], [*dynamic[:4], dynamic[4:]]
    with quiet():
        torch.onnx.export(
            graph.module,
            tuple(arguments),
            str(path),
            input_names=list(graph.inputs),
            output_names=graph.outputs,
            dynamic_shapes=tuple(dynamic),
            opset_version=OPSET,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    drop_traces(path)


def drop_traces(path: Path) -> None:
    """Removes what the exporter notes at every node: stack traces, with the folders of the machine it ran on."""
    model = onnx.load(path)
    annotated: list[Any] = [model.graph, *model.graph.node, *model.graph.initializer]
    annotated += [*model.graph.value_info, *model.graph.input, *model.graph.output]
    annotated += [item for function in model.functions for item in (function, *function.node)]
    for item in annotated:
        del item.metadata_props[:]
        item.doc_string = ""
    onnx.save(model, path)
