"""The two kinds of network a bundle may hold, each from normalised images to hypotheses."""

from collections.abc import Sequence
from math import lcm
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from glyphline.models.alphabet import Alphabet
from glyphline.models.binding import Binder
from glyphline.models.bundle import Bundle
from glyphline.models.decoding.ctc import decode_ctc
from glyphline.models.decoding.distributions import FloatArray
from glyphline.models.decoding.options import ResolvedOptions
from glyphline.models.decoding.readings import Hypothesis
from glyphline.models.errors import BundleError
from glyphline.models.gpu import CUDA, TENSORRT, EngineShapes
from glyphline.models.joining import Run, join_runs
from glyphline.models.long_lines import Window, merge_frames
from glyphline.models.manifest import MANIFEST_NAME, Precision
from glyphline.models.session import Device, Provider, Session, open_session, session_device
from glyphline.models.step_head import FUSED_BEAM_IMAGES, StepHead
from glyphline.models.timings import StageTimings

__all__ = ["FUSED_BEAM_IMAGES", "HEADS_THAT_LOOK_AT_FRAMES", "CtcHead", "Head", "StepHead", "open_head"]

HEADS_THAT_LOOK_AT_FRAMES = frozenset({"attention"})

_LINE_STEP = 1024
"""Columns: a long line is padded to a multiple of it where what runs the graph prepares itself for every width."""

_INPUTS = ["images", "widths"]


class Head(Protocol):
    """A network with the decoders that understand it. Safe to use from several threads."""

    @property
    def provider(self) -> str:
        """The execution provider it runs on."""

    def read(
        self, runs: Sequence[Run], options: ResolvedOptions, temperature: float, timings: StageTimings
    ) -> list[list[Hypothesis]]:
        """Reads normalised images: run by run through the network, and all in one search.

        Args:
            runs: The images. At least one run.
            options: Search, restrictions and limits.
            temperature: Calibrates confidences.
            timings: Is told the time spent.

        Returns:
            The hypotheses of each image, in order, best first, at least one.
        """


def open_head(
    bundle: Bundle,
    alphabet: Alphabet,
    device: Device,
    threads: int,
    *,
    allow_cpu_fallback: bool,
    provider: Provider = "onnxruntime",
    precision: Precision = "fp32",
    memory: int | None = None,
) -> Head:
    """Opens the graphs of a bundle.

    Args:
        bundle: The bundle.
        alphabet: Its alphabet.
        device: Where to run them.
        threads: Threads a single run may use.
        allow_cpu_fallback: Whether the CPU will do if the device is not to be had.
        provider: What runs them there.
        precision: Which variant of the graphs.
        memory: Most bytes that each graph may keep on a GPU; None for as many as it takes.

    Returns:
        The head.

    Raises:
        BundleError: If the bundle has no such variant, or a graph cannot be opened or does not fit the manifest.
        DeviceError: If the device is not available.
    """
    manifest = bundle.manifest
    files = {role: bundle.file(name) for role, name in bundle.graphs(precision).items()}
    shapes = EngineShapes(manifest.image.height, manifest.image.max_width)

    def open_graph(role: str, provider: Provider) -> Session:
        return open_session(
            files[role],
            device,
            threads,
            allow_cpu_fallback=allow_cpu_fallback,
            provider=provider,
            memory=memory,
            shapes=shapes,
        )

    # A decoder stays with ONNX Runtime's own kernels: others would prepare themselves anew at nearly every step, for
    # the rows that are left.
    sessions = {
        role: open_graph(role, "onnxruntime" if role in ("decoder_step", "decode") else provider) for role in files
    }
    if manifest.head == "ctc":
        network = sessions["network"]
        _check_graph(network, files["network"], _INPUTS, CtcHead.outputs, alphabet)
        used, multiple = session_device(network), manifest.width_multiple
        return CtcHead(
            network,
            multiple=multiple if used.startswith("CPU") else lcm(multiple, _LINE_STEP),
            pixels_per_frame=manifest.pixels_per_frame,
            # An engine is made for strips, and refuses what is wider.
            long_lines=open_graph("network", "onnxruntime") if used == TENSORRT else network,
        )
    states = [state.name for state in manifest.states]
    encoder, step, decode = sessions["encoder"], sessions["decoder_step"], sessions.get("decode")
    on_gpu = all(session_device(session) in (CUDA, TENSORRT) for session in sessions.values())
    head = StepHead(
        encoder,
        step,
        states,
        alphabet.start,
        looks_at_frames=manifest.head in HEADS_THAT_LOOK_AT_FRAMES,
        decode=decode,
        binder=Binder(device, memory) if on_gpu else None,
    )
    _check_graph(encoder, files["encoder"], _INPUTS, head.encoder_outputs, None)
    _check_graph(step, files["decoder_step"], head.step_inputs, head.step_outputs, alphabet)
    if decode is not None:
        _check_graph(decode, files["decode"], head.decode_inputs, head.decode_outputs, alphabet)
    return head


def _check_graph(
    session: Session,
    file: Path,
    inputs: Sequence[str],
    outputs: Sequence[str],
    alphabet: Alphabet | None,
) -> None:
    """Compares a graph with what the manifest says of it; `alphabet` is given where the graph outputs symbols."""
    found = {tensor.name: tensor for tensor in session.get_outputs()}
    for kind, wanted, present in (
        ("input", inputs, {tensor.name for tensor in session.get_inputs()}),
        ("output", outputs, set(found)),
    ):
        missing = sorted(set(wanted) - present)
        unknown = sorted(present - set(wanted)) if kind == "input" else []
        if missing or unknown:
            fault = f"lacks the {kind} {missing[0]!r}" if missing else f"has an unknown {kind} {unknown[0]!r}"
            raise BundleError(f"{file}: the graph {fault}")
    if alphabet is not None:
        symbols = found["log_probabilities"].shape[-1]
        if isinstance(symbols, int) and symbols != alphabet.size:
            raise BundleError(
                f"{file}: the graph writes {symbols} classes, but the alphabet of {MANIFEST_NAME} needs {alphabet.size}"
            )


class CtcHead:
    """One graph, from images to the log-probabilities of every frame."""

    outputs = ("log_probabilities", "lengths")

    def __init__(
        self, session: Session, *, multiple: int, pixels_per_frame: float, long_lines: Session | None = None
    ) -> None:
        """Puts a head together.

        Args:
            session: The graph.
            multiple: A long line is padded to a multiple of it.
            pixels_per_frame: Columns of a frame.
            long_lines: The graph for lines that are too wide for a single run; None for the same.
        """
        self._session = session
        self._long_lines = long_lines or session
        self._multiple = multiple
        self._pixels_per_frame = pixels_per_frame

    @property
    def provider(self) -> str:
        """The execution provider it runs on."""
        return session_device(self._session)

    def read(
        self, runs: Sequence[Run], options: ResolvedOptions, temperature: float, timings: StageTimings
    ) -> list[list[Hypothesis]]:
        """Reads normalised images, as `Head.read` says."""
        with timings.measure("infer"):
            found = [self._session.run(self.outputs, {"images": images, "widths": widths}) for images, widths in runs]
        with timings.measure("search"):
            joined = join_runs([dict(zip(self.outputs, one, strict=True)) for one in found])
            return decode_ctc(joined["log_probabilities"], joined["lengths"], options, temperature=temperature)

    def read_windows(
        self,
        strip: NDArray[np.uint8],
        windows: Sequence[Window],
        batch: int,
        options: ResolvedOptions,
        temperature: float,
        timings: StageTimings,
    ) -> list[Hypothesis]:
        """Reads one strip that is too wide for a single run.

        Args:
            strip: (height, width), normalised; the width is a multiple of what the graph takes.
            windows: How it is cut.
            batch: Most windows in a run.
            options: Search, restrictions and limits.
            temperature: Calibrates confidences.
            timings: Is told the time spent.

        Returns:
            The hypotheses, best first, at least one.
        """
        widest = max(window.stop - window.start for window in windows)
        widest += -widest % self._multiple
        parts: list[FloatArray] = []
        for begin in range(0, len(windows), batch):
            some = windows[begin : begin + batch]
            images = np.zeros((len(some), 1, len(strip), widest), dtype=np.uint8)
            widths = np.array([window.stop - window.start for window in some], dtype=np.int64)
            for image, window in zip(images, some, strict=True):
                image[0, :, : window.stop - window.start] = strip[:, window.start : window.stop]
            timings.batches.append((len(some), 1.0 - float(widths.sum()) / (len(some) * widest)))
            with timings.measure("infer"):
                found, lengths = self._long_lines.run(self.outputs, {"images": images, "widths": widths})
            parts += [frames[:length] for frames, length in zip(found, lengths.tolist(), strict=True)]
        with timings.measure("search"):
            merged = merge_frames(parts, windows, self._pixels_per_frame)
            whole = np.array([len(merged)], dtype=np.int64)
            return decode_ctc(merged[None], whole, options, temperature=temperature)[0]
