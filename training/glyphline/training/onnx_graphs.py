"""Writes the graphs of a bundle: which modules, with which inputs and outputs, through torch's exporter."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import Tensor, nn

from glyphline.training.config.network import HeadName
from glyphline.training.errors import ExportError
from glyphline.training.networks.graphs import CTCGraph, EncoderGraph, FrameStepGraph, VectorStepGraph
from glyphline.training.networks.onnx_recurrent import OPSET
from glyphline.training.networks.recogniser import RecogniserNetwork

Head = HeadName


@dataclass(frozen=True, slots=True)
class Graph:
    """One graph of a bundle.

    Attributes:
        role: Its role in the manifest.
        module: What is exported.
        inputs: Example inputs by name, in order; axis 0 is the batch.
        outputs: Names of the outputs, in order.
        dynamic: For each input, its axes besides the batch that vary, and their names.
        states: How many of the inputs, the last ones, are given to the module as one list of tensors.
    """

    role: str
    module: nn.Module
    inputs: dict[str, Tensor]
    outputs: list[str]
    dynamic: dict[str, dict[int, str]]
    states: int = 0


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
            raise ExportError(_lacks(network, head))
        module = CTCGraph(network.encoder, network.ctc).eval()
        return [Graph("network", module, strips, ["log_probabilities", "lengths"], varying)]
    decoder = network.decoder
    if decoder is None or network.config.decoder_head != head:
        raise ExportError(_lacks(network, head))
    names = decoder.state_names
    with torch.no_grad():
        memory, lengths = network.encoder(images, widths)
        keys, state = decoder.begin(memory, lengths)
    looks = decoder.looks_at_frames
    seen = ["memory", "keys", "lengths"] if looks else ["lengths"]
    encoder = EncoderGraph(network.encoder, decoder).eval()
    step = FrameStepGraph(decoder).eval() if looks else VectorStepGraph(decoder).eval()
    inputs = {"symbols": torch.tensor([1, 2, 3]) % network.symbols}
    if keys is not None:
        inputs |= {"memory": memory, "keys": keys, "lengths": lengths}
    inputs |= dict(zip(names, state, strict=True))
    over_frames = {"memory", "keys", *decoder.frame_states}
    dynamic = {name: {1: "frames"} if name in over_frames else {} for name in inputs}
    written = ["log_probabilities", "attention"] if looks else ["log_probabilities"]
    return [
        Graph("encoder", encoder, strips, [*seen, *(f"initial_{name}" for name in names)], varying),
        Graph("decoder_step", step, inputs, [*written, *(f"next_{name}" for name in names)], dynamic, len(names)),
    ]


def _lacks(network: RecogniserNetwork, head: Head) -> str:
    name = "CTC" if head == "ctc" else head
    return f"this network has no {name} head: it was trained with {' and '.join(network.config.heads)}"


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
    if graph.states:
        first = len(arguments) - graph.states
        arguments, dynamic = [*arguments[:first], arguments[first:]], [*dynamic[:first], dynamic[first:]]
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
