"""Graphs run by OpenVINO, with the face of an ONNX Runtime session.

OpenVINO computes in bfloat16 where the processor multiplies it, which ONNX Runtime does not do on a CPU. Two of its
ways are seen to here. A session asked to run on the CPU is asked where it really runs. And its recurrent layers read
every sequence to the end of the batch, whatever its length: the direction from the right would start in a strip's
padding. So layers of both directions are taken apart, and the second one is given each strip reversed by itself.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glyphline.models.errors import BundleError, DeviceError

__all__ = ["OpenVinoSession"]

_SEQUENCES = {"LSTMSequence", "GRUSequence", "RNNSequence"}


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of a graph.

    Attributes:
        name: Its name.
        shape: Its axes; those that vary are None.
    """

    name: str
    shape: tuple[int | None, ...]


class OpenVinoSession:
    """A graph compiled by OpenVINO for the CPU. It may be run from several threads at once.

    Args:
        path: The ONNX file.
        threads: Threads that a single run may use.

    Raises:
        DeviceError: If OpenVINO is not installed, or would not run on the CPU.
        BundleError: If it cannot compile the graph.
    """

    def __init__(self, path: Path, threads: int) -> None:
        os.environ.setdefault("OPENVINO_TELEMETRY_OPT_OUT", "1")
        try:
            import openvino  # noqa: PLC0415  (optional)
        except ImportError as error:
            raise DeviceError(
                f"OpenVINO cannot be imported ({error}); pip install 'glyphline[openvino]', or leave --provider out"
            ) from error
        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "ENABLE_CPU_PINNING": False,  # workers of one machine would all be pinned to its first core
            "PERFORMANCE_HINT": "LATENCY",
        }
        core = openvino.Core()
        try:
            model = core.read_model(path)
            # Asked before it is compiled: then an input also bears the names of what was merged into it.
            names = [[port.get_any_name() for port in ports] for ports in (model.inputs, model.outputs)]
            split_directions(model)
            self._model = core.compile_model(model, "CPU", settings)
        except BundleError as error:
            raise BundleError(f"{path}: {error}") from error
        except Exception as error:
            raise BundleError(f"{path}: OpenVINO cannot open this graph: {error}") from error
        devices = [str(device) for device in self._model.get_property("EXECUTION_DEVICES")]
        if devices != ["CPU"]:
            raise DeviceError(f"provider 'openvino' was to run on the CPU and came up on {', '.join(devices)}")
        kind = self._model.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        self._provider = f"OpenVINO ({kind})"
        self._inputs, self._outputs = names[0], {name: index for index, name in enumerate(names[1])}
        self._requests = threading.local()

    def get_inputs(self) -> list[Tensor]:
        """Lists the inputs."""
        return [_tensor(name, port) for name, port in zip(self._inputs, self._model.inputs, strict=True)]

    def get_outputs(self) -> list[Tensor]:
        """Lists the outputs."""
        return [_tensor(name, port) for name, port in zip(self._outputs, self._model.outputs, strict=True)]

    def get_providers(self) -> list[str]:
        """Names what runs the graph, with the numbers that it computes in."""
        return [self._provider]

    def run(self, outputs: Sequence[str] | None, inputs: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """Runs the graph.

        Args:
            outputs: Names of the outputs wanted; None for all.
            inputs: Every input by name.

        Returns:
            The outputs wanted, in order.
        """
        request = getattr(self._requests, "request", None)
        if request is None:
            request = self._requests.request = self._model.create_infer_request()
        request.infer({name: np.ascontiguousarray(value) for name, value in inputs.items()}, share_inputs=True)
        wanted = self._outputs if outputs is None else outputs
        # Copied: the request's next run writes into the same memory.
        return [np.array(request.get_output_tensor(self._outputs[name]).data) for name in wanted]


def _tensor(name: str, port: Any) -> Tensor:  # noqa: ANN401  (OpenVINO has no types)
    return Tensor(name, tuple(int(axis.get_length()) if axis.is_static else None for axis in port.get_partial_shape()))


def split_directions(model: Any) -> None:  # noqa: ANN401  (OpenVINO has no types)
    """Takes recurrent layers of both directions apart, in place, so that each strip is read from its own end.

    Raises:
        BundleError: If a layer's last state is used, which would be the padding's.
    """
    for layer in model.get_ordered_ops():
        if layer.get_type_name() not in _SEQUENCES:
            continue
        if any(output.get_target_inputs() for output in layer.outputs()[1:]):
            raise BundleError("OpenVINO cannot run a recurrent layer whose last state is used")
        direction = layer.get_attributes()["direction"]
        if direction == "reverse":
            raise BundleError("OpenVINO cannot run a recurrent layer that reads from the right only")
        if direction == "bidirectional":
            layer.output(0).replace(_both_directions(layer))


def _both_directions(layer: Any) -> Any:  # noqa: ANN401  (OpenVINO has no types)
    """Builds what a layer of both directions gives (batch, 2, frames, size) from two that read from the left."""
    from openvino import opset13 as operations  # noqa: PLC0415  (optional)

    values = [each.get_source_output() for each in layer.inputs()]
    states = 2 if layer.get_type_name() == "LSTMSequence" else 1  # an LSTM's memory follows its state
    features, initial, lengths, weights = values[0], values[1 : 1 + states], values[1 + states], values[2 + states :]
    attributes = {
        name: value
        for name, value in layer.get_attributes().items()
        if name in ("hidden_size", "activations", "clip", "linear_before_reset")
        and not (name == "linear_before_reset" and layer.get_type_name() != "GRUSequence")
    }
    make = {
        "LSTMSequence": operations.lstm_sequence,
        "GRUSequence": operations.gru_sequence,
        "RNNSequence": operations.rnn_sequence,
    }[layer.get_type_name()]

    def read(features: Any, direction: int) -> Any:  # noqa: ANN401
        index = np.array([direction], dtype=np.int64)
        first = [operations.gather(value, index, np.int64(1)) for value in initial]
        parts = [operations.gather(value, index, np.int64(0)) for value in weights]
        return make(features, *first, lengths, *parts, direction="forward", **attributes).output(0)

    backwards = read(operations.reverse_sequence(features, lengths, 0, 1).output(0), 1)  # (batch, 1, frames, size)
    restored = operations.reverse_sequence(backwards, lengths, 0, 2).output(0)
    return operations.concat([read(features, 0), restored], 1).output(0)
