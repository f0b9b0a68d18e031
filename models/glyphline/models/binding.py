"""Tensors that stay on the device between runs of ONNX Runtime, and are indexed by rows there.

A step-wise decoder is run once for every symbol. Given arrays, ONNX Runtime would carry what the encoder found and the
decoder's state to the GPU and back at each step. Here they stay where they are: what one run leaves there is bound as
the next one's input, and only what a search looks at comes back. Nothing here knows of GPUs: the same is done, and
tested, on the CPU, where there is nothing to win by it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from glyphline.models.devices import Device, gpu_number
from glyphline.models.gpu import CUDA, cuda_options
from glyphline.models.session import Session, session_options

__all__ = ["Binder", "Rows", "padded_rows"]

# `Gather` of float rows, as an ONNX model of opset 18: `tensor` (any, …) and `rows` (n) give `selected` (n, …).
_SELECT = bytes.fromhex(
    "08083a6e0a2d0a0674656e736f720a04726f7773120873656c656374656422064761746865722a0b0a04617869731800a001021206"
    "73656c6563745a0e0a0674656e736f7212040a0208015a130a04726f7773120b0a09080712050a0312016e62100a0873656c656374"
    "656412040a02080142040a001012"
)


def padded_rows(count: int) -> int:
    """Returns with how many rows `count` rows are run: the next power of two, so that there are few shapes."""
    return 1 << max(0, count - 1).bit_length()


class Rows:
    """A tensor on a device, of which each row belongs to a hypothesis; it is indexed by rows like an array.

    Attributes:
        value: The tensor of ONNX Runtime. Rows beyond `count` mean nothing.
        count: Rows that mean something.
    """

    def __init__(self, value: Any, count: int, binder: "Binder") -> None:  # noqa: ANN401  (ONNX Runtime has no types)
        """Takes a tensor that a run left on the device."""
        self.value = value
        self.count = count
        self._binder = binder

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> "Rows":
        """Picks rows on the device, by their numbers or by a mask, and pads them to `padded_rows`."""
        chosen = rows.nonzero()[0] if rows.dtype == np.bool_ else rows
        padded = np.zeros(padded_rows(len(chosen)), dtype=np.int64)
        padded[: len(chosen)] = chosen
        return Rows(self._binder.select(self.value, padded), len(chosen), self._binder)

    def padded(self) -> "Rows":
        """Returns the same rows with as many beyond them as `padded_rows` says."""
        return self if self.value.shape()[0] == padded_rows(self.count) else self[np.arange(self.count)]

    def numpy(self) -> NDArray[Any]:
        """Brings the rows back from the device; for whoever wants to see them."""
        found: NDArray[Any] = self.value.numpy()[: self.count]
        return found


class Binder:
    """Runs the sessions of one device with inputs and outputs that stay there. Safe to use from several threads."""

    def __init__(self, device: Device, memory: int | None = None) -> None:
        """Prepares a device.

        Args:
            device: The one that the sessions run on.
            memory: Most bytes that picked rows may keep on a GPU; None for as many as they take.
        """
        import onnxruntime  # noqa: PLC0415  (optional)

        number = gpu_number(device)
        self._place = ("cpu", 0) if number is None else ("cuda", number)
        providers: list[Any] = ["CPUExecutionProvider"]
        if number is not None:
            providers.insert(0, (CUDA, cuda_options(number, memory)))
        self._selection: Session = onnxruntime.InferenceSession(_SELECT, session_options(1), providers=providers)

    def run(
        self,
        session: Session,
        inputs: Mapping[str, NDArray[Any] | Rows],
        *,
        fetched: Sequence[str],
        kept: Sequence[str] = (),
        count: int = 0,
    ) -> tuple[list[NDArray[Any]], list[Rows]]:
        """Runs a graph.

        Args:
            session: A session of ONNX Runtime on this device.
            inputs: Every input by name, from the host or from the device.
            fetched: Outputs that are brought to the host.
            kept: Outputs that stay on the device.
            count: How many rows of those mean something.

        Returns:
            The outputs fetched and those kept, each in order.
        """
        values = self._run(session, inputs, fetched, kept)
        arrays = [value.numpy() for value in values[: len(fetched)]]
        return arrays, [Rows(value, count, self) for value in values[len(fetched) :]]

    def select(self, tensor: Any, rows: NDArray[np.int64]) -> Any:  # noqa: ANN401  (ONNX Runtime has no types)
        """Picks rows of a tensor of the device by their numbers."""
        (selected,) = self._run(self._selection, {"tensor": tensor, "rows": rows}, (), ("selected",))
        return selected

    def _run(
        self, session: Session, inputs: Mapping[str, Any], fetched: Sequence[str], kept: Sequence[str]
    ) -> list[Any]:
        # A binding of its own for every run: it takes microseconds, and threads do not meet in it.
        native = cast("Any", session)
        binding = native.io_binding()
        for name, value in inputs.items():
            if isinstance(value, np.ndarray):
                binding.bind_cpu_input(name, np.asarray(value, order="C"))
            else:
                binding.bind_ortvalue_input(name, value.value if isinstance(value, Rows) else value)
        for name in fetched:
            binding.bind_output(name, "cpu")
        for name in kept:
            binding.bind_output(name, *self._place)
        native.run_with_iobinding(binding)
        outputs: list[Any] = binding.get_outputs()
        return outputs
