"""The two kinds of network a bundle may hold, each from normalised images to hypotheses."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from glyphline.models.alphabet import Alphabet
from glyphline.models.bundle import MANIFEST_NAME, Bundle, Precision
from glyphline.models.decoding.attention import StepOutput, decode_attention
from glyphline.models.decoding.ctc import decode_ctc
from glyphline.models.decoding.distributions import FloatArray
from glyphline.models.decoding.fused import FUSED_INPUTS, FusedOutput, fused_inputs, fused_outputs, read_fused
from glyphline.models.decoding.options import ResolvedOptions
from glyphline.models.decoding.readings import Hypothesis
from glyphline.models.errors import BundleError
from glyphline.models.long_lines import Window, merge_frames
from glyphline.models.session import Device, Provider, Session, open_session, session_device
from glyphline.models.timings import StageTimings

__all__ = ["FUSED_BEAM_IMAGES", "HEADS_THAT_LOOK_AT_FRAMES", "CtcHead", "Head", "StepHead", "open_head"]

HEADS_THAT_LOOK_AT_FRAMES = frozenset({"attention"})

FUSED_BEAM_IMAGES = 4
"""A beam search for more images than these is left to the loop over the step: images that are done leave it, and with
each so many rows as its beam is wide. `benchmarks/decode.py` measures both."""

_INPUTS = ["images", "widths"]


class Head(Protocol):
    """A network with the decoders that understand it. Safe to use from several threads."""

    @property
    def provider(self) -> str:
        """The execution provider it runs on."""

    def read(
        self,
        images: NDArray[np.uint8],
        widths: NDArray[np.int64],
        options: ResolvedOptions,
        temperature: float,
        timings: StageTimings,
    ) -> list[list[Hypothesis]]:
        """Reads a batch of normalised images.

        Args:
            images: (batch, 1, height, width), zero beyond each image's own width.
            widths: Width of each image (batch).
            options: Search, restrictions and limits.
            temperature: Calibrates confidences.
            timings: Is told the time spent.

        Returns:
            The hypotheses of each image, best first, at least one.
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

    Returns:
        The head.

    Raises:
        BundleError: If the bundle has no such variant, or a graph cannot be opened or does not fit the manifest.
        DeviceError: If the device is not available.
    """
    files = {role: bundle.file(name) for role, name in bundle.graphs(precision).items()}
    sessions = {}
    for role, file in files.items():
        # OpenVINO would prepare itself anew at nearly every step, for the rows that are left.
        by = "onnxruntime" if role in ("decoder_step", "decode") and provider == "openvino" else provider
        sessions[role] = open_session(file, device, threads, allow_cpu_fallback=allow_cpu_fallback, provider=by)
    if bundle.manifest.head == "ctc":
        _check_graph(sessions["network"], files["network"], _INPUTS, CtcHead.outputs, alphabet)
        manifest = bundle.manifest
        return CtcHead(
            sessions["network"], multiple=manifest.width_multiple, pixels_per_frame=manifest.pixels_per_frame
        )
    states = [state.name for state in bundle.manifest.states]
    encoder, step, decode = sessions["encoder"], sessions["decoder_step"], sessions.get("decode")
    head = StepHead(
        encoder,
        step,
        states,
        alphabet.start,
        looks_at_frames=bundle.manifest.head in HEADS_THAT_LOOK_AT_FRAMES,
        decode=decode,
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

    def __init__(self, session: Session, *, multiple: int, pixels_per_frame: float) -> None:
        """Puts a head together.

        Args:
            session: The graph.
            multiple: The graph takes only widths that are a multiple of it.
            pixels_per_frame: Columns of a frame.
        """
        self._session = session
        self._multiple = multiple
        self._pixels_per_frame = pixels_per_frame

    @property
    def provider(self) -> str:
        """The execution provider it runs on."""
        return session_device(self._session)

    def read(
        self,
        images: NDArray[np.uint8],
        widths: NDArray[np.int64],
        options: ResolvedOptions,
        temperature: float,
        timings: StageTimings,
    ) -> list[list[Hypothesis]]:
        """Reads a batch of normalised images, as `Head.read` says."""
        with timings.measure("infer"):
            log_probabilities, lengths = self._session.run(self.outputs, {"images": images, "widths": widths})
        with timings.measure("search"):
            return decode_ctc(log_probabilities, lengths, options, temperature=temperature)

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
                found, lengths = self._session.run(self.outputs, {"images": images, "widths": widths})
            parts += [frames[:length] for frames, length in zip(found, lengths.tolist(), strict=True)]
        with timings.measure("search"):
            merged = merge_frames(parts, windows, self._pixels_per_frame)
            whole = np.array([len(merged)], dtype=np.int64)
            return decode_ctc(merged[None], whole, options, temperature=temperature)[0]


class StepHead:
    """Two graphs, an encoder and a decoder that takes one step at a time; and, it may be, one of the whole search.

    Where there is that third graph, it does the searches that it does faster, and none that a lexicon or a language
    model steers.
    """

    def __init__(
        self,
        encoder: Session,
        step: Session,
        states: Sequence[str],
        start: int,
        *,
        looks_at_frames: bool,
        decode: Session | None = None,
    ) -> None:
        """Puts a head together.

        Args:
            encoder: From images to what the decoder starts with.
            step: One step of the decoder.
            states: Names of the tensors of its recurrent state.
            start: The class that stands for the start of a text.
            looks_at_frames: Whether the decoder is given the encoder's frames at every step, as attention is.
            decode: The fused graph: all steps of the decoder with the search.
        """
        self._encoder = encoder
        self._step = step
        self._start = start
        self._decode = decode
        self._frames = ["memory", "keys", "lengths"] if looks_at_frames else []
        self.encoder_outputs = [*(self._frames or ["lengths"]), *(f"initial_{name}" for name in states)]
        self.step_inputs = ["symbols", *self._frames, *states]
        looked = ["attention"] if looks_at_frames else []
        self.step_outputs = ["log_probabilities", *looked, *(f"next_{name}" for name in states)]
        self._decoder_inputs = [*self._frames, *(f"initial_{name}" for name in states)]
        self.decode_inputs = [*self._decoder_inputs, *FUSED_INPUTS]
        self.decode_outputs = fused_outputs(looks_at_frames=looks_at_frames)

    @property
    def provider(self) -> str:
        """The execution provider it runs on."""
        return session_device(self._encoder)

    def read(
        self,
        images: NDArray[np.uint8],
        widths: NDArray[np.int64],
        options: ResolvedOptions,
        temperature: float,
        timings: StageTimings,
    ) -> list[list[Hypothesis]]:
        """Reads a batch of normalised images, as `Head.read` says."""
        return self.decode(self.encode(images, widths, timings), options, temperature, timings)

    def encode(
        self, images: NDArray[np.uint8], widths: NDArray[np.int64], timings: StageTimings
    ) -> dict[str, NDArray[Any]]:
        """Runs the encoder on a batch of normalised images; returns its outputs by name."""
        with timings.measure("infer"):
            found = self._encoder.run(self.encoder_outputs, {"images": images, "widths": widths})
        return dict(zip(self.encoder_outputs, found, strict=True))

    def fuses(self, options: ResolvedOptions, images: int) -> bool:
        """Whether a search is left to the fused graph where nobody says which way to go.

        Args:
            options: The search.
            images: How many it is for.
        """
        few = options.beam_width == 1 or images <= FUSED_BEAM_IMAGES
        return self._decode is not None and options.guide is None and few

    def decode(
        self,
        encoded: dict[str, NDArray[Any]],
        options: ResolvedOptions,
        temperature: float,
        timings: StageTimings,
        *,
        fused: bool | None = None,
    ) -> list[list[Hypothesis]]:
        """Searches, as `Head.read` says, in what the encoder gave.

        Args:
            encoded: That.
            options: Search, restrictions and limits.
            temperature: Calibrates confidences.
            timings: Is told the time spent.
            fused: Whether by the fused graph, which has to be there and knows of no guide; None for the faster way.

        Returns:
            The hypotheses of each image, best first, at least one.
        """
        lengths = encoded["lengths"]
        if not len(lengths):
            return []
        if self.fuses(options, len(lengths)) if fused is None else fused:
            assert self._decode is not None
            with timings.measure("infer"):
                inputs = {name: encoded[name] for name in self._decoder_inputs}
                inputs |= fused_inputs(options, self._start)  # the class of the start follows all that are written
                wanted = fused_outputs(looks_at_frames=bool(self._frames) and options.token_details)
                found: dict[str, Any] = {"attention": None}
                found |= zip(wanted, self._decode.run(wanted, inputs), strict=True)
            with timings.measure("search"):
                return read_fused(FusedOutput(**found), lengths, options, temperature=temperature)
        with timings.measure("search"):
            frames = [encoded[name] for name in self._frames]
            initial = [encoded[name] for name in self._decoder_inputs if name not in self._frames]
            decoder = _BoundDecoder(self, frames, initial, len(lengths), timings)
            return decode_attention(decoder, lengths, self._start, options, temperature=temperature)

    def step(self, inputs: Sequence[NDArray[np.generic]]) -> StepOutput:
        """Runs the decoder's step on its inputs in order."""
        outputs: list[FloatArray] = self._step.run(self.step_outputs, dict(zip(self.step_inputs, inputs, strict=True)))
        if self._frames:
            return StepOutput(outputs[0], outputs[1], outputs[2:])
        return StepOutput(outputs[0], None, outputs[1:])


class _BoundDecoder:
    """The decoder of a step-wise head, bound to the encoded images of one batch."""

    def __init__(
        self,
        head: StepHead,
        frames: Sequence[FloatArray],
        initial: Sequence[FloatArray],
        count: int,
        timings: StageTimings,
    ) -> None:
        self._head = head
        self._frames = frames
        self._initial = initial
        self._timings = timings
        self._images = np.arange(count)
        self._rows = frames

    def start(self) -> Sequence[FloatArray]:
        return self._initial

    def step(self, symbols: NDArray[np.int64], states: Sequence[FloatArray], images: NDArray[np.int64]) -> StepOutput:
        if not np.array_equal(images, self._images):
            # One row of memory for every hypothesis; from step to step these seldom change.
            self._images, self._rows = images, [tensor[images] for tensor in self._frames]
        with self._timings.measure("infer"):
            return self._head.step([symbols, *self._rows, *states])
