"""The heads that write step by step: an encoder, a decoder's step and, it may be, the whole search in one graph."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glyphline.models.binding import Binder, Rows, padded_rows
from glyphline.models.decoding.attention import StepOutput, decode_attention
from glyphline.models.decoding.fused import FUSED_INPUTS, FusedOutput, fused_inputs, fused_outputs, read_fused
from glyphline.models.decoding.options import ResolvedOptions
from glyphline.models.decoding.readings import Hypothesis
from glyphline.models.joining import Run, join_runs
from glyphline.models.session import Session, session_device
from glyphline.models.timings import StageTimings

__all__ = ["FUSED_BEAM_IMAGES", "Encoded", "StepHead"]

FUSED_BEAM_IMAGES = 4
"""A beam search for more images than these is left to the loop over the step: images that are done leave it, and with
each so many rows as its beam is wide. `benchmarks/decode.py` measures both."""

Encoded = dict[str, Any]
"""What the encoder gave, by name: arrays, or rows that stayed on the device. The lengths are always an array."""


class StepHead:
    """Two graphs, an encoder and a decoder that takes one step at a time; and, it may be, one of the whole search.

    Where there is that third graph, it does the searches that it does faster, and none that a lexicon or a language
    model steers. On a GPU a binder keeps there what one graph gives to the next.
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
        binder: Binder | None = None,
    ) -> None:
        """Puts a head together.

        Args:
            encoder: From images to what the decoder starts with.
            step: One step of the decoder.
            states: Names of the tensors of its recurrent state.
            start: The class that stands for the start of a text.
            looks_at_frames: Whether the decoder is given the encoder's frames at every step, as attention is.
            decode: The fused graph: all steps of the decoder with the search.
            binder: Keeps tensors on the device of the sessions; without one they come and go as arrays.
        """
        self._encoder = encoder
        self._step = step
        self._start = start
        self._decode = decode
        self._binder = binder
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
        self, runs: Sequence[Run], options: ResolvedOptions, temperature: float, timings: StageTimings
    ) -> list[list[Hypothesis]]:
        """Reads normalised images, as `Head.read` says; what stays on a GPU is searched run by run."""
        encoded: list[Encoded] = [self.encode(*run, timings) for run in runs]
        if self._binder is None:
            encoded = [join_runs(encoded)]
        return [found for one in encoded for found in self.decode(one, options, temperature, timings)]

    def encode(self, images: NDArray[np.uint8], widths: NDArray[np.int64], timings: StageTimings) -> Encoded:
        """Runs the encoder on a batch of normalised images."""
        inputs: dict[str, NDArray[Any]] = {"images": images, "widths": widths}
        with timings.measure("infer"):
            if self._binder is None:
                return dict(zip(self.encoder_outputs, self._encoder.run(self.encoder_outputs, inputs), strict=True))
            names = [name for name in self.encoder_outputs if name != "lengths"]
            (lengths,), rows = self._binder.run(
                self._encoder, inputs, fetched=["lengths"], kept=names, count=len(widths)
            )
            return {"lengths": lengths, **dict(zip(names, rows, strict=True))}

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
        encoded: Encoded,
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
        lengths: NDArray[np.int64] = encoded["lengths"]
        if not len(lengths):
            return []
        if self.fuses(options, len(lengths)) if fused is None else fused:
            assert self._decode is not None
            with timings.measure("infer"):
                inputs = {name: encoded[name] for name in self._decoder_inputs}
                inputs |= fused_inputs(options, self._start)  # the class of the start follows all that are written
                wanted = fused_outputs(looks_at_frames=bool(self._frames) and options.token_details)
                found: dict[str, Any] = {"attention": None}
                found |= zip(wanted, self._fetch(self._decode, wanted, inputs), strict=True)
            with timings.measure("search"):
                return read_fused(FusedOutput(**found), lengths, options, temperature=temperature)
        with timings.measure("search"):
            frames = [encoded[name] for name in self._frames]
            initial = [encoded[name] for name in self._decoder_inputs if name not in self._frames]
            decoder = _BoundDecoder(self, frames, initial, len(lengths), options.token_details, timings)
            return decode_attention(decoder, lengths, self._start, options, temperature=temperature)

    def step(self, inputs: Sequence[Any], *, details: bool = True) -> StepOutput:
        """Runs the decoder's step.

        Args:
            inputs: Its inputs in order, arrays or rows on the device.
            details: Whether anybody wants to know where an attention head looked.
        """
        looked = ["attention"] if self._frames and details else []
        seen = ["log_probabilities", *looked]
        states = [name for name in self.step_outputs if name.startswith("next_")]
        named = dict(zip(self.step_inputs, inputs, strict=True))
        left: Sequence[Any]
        if self._binder is None:
            found = self._step.run([*seen, *states], named)
            left = found[len(seen) :]
        else:
            count = len(inputs[0])
            padded = {name: _pad(value, padded_rows(count)) for name, value in named.items()}
            found, left = self._binder.run(self._step, padded, fetched=seen, kept=states, count=count)
            found = [values[:count] for values in found]
        return StepOutput(found[0], found[1] if looked else None, left)

    def _fetch(self, session: Session, outputs: Sequence[str], inputs: dict[str, Any]) -> list[NDArray[Any]]:
        """Runs a graph whose outputs nothing but the search needs."""
        if self._binder is None:
            return session.run(outputs, inputs)
        return self._binder.run(session, inputs, fetched=outputs)[0]


class _BoundDecoder:
    """The decoder of a step-wise head, bound to the encoded images of one batch."""

    def __init__(
        self,
        head: StepHead,
        frames: Sequence[Any],
        initial: Sequence[Any],
        count: int,
        details: bool,
        timings: StageTimings,
    ) -> None:
        self._head = head
        self._details = details
        self._frames = [_fill(tensor) for tensor in frames]
        self._initial = [_fill(tensor) for tensor in initial]
        self._timings = timings
        self._images = np.arange(count)
        self._rows = self._frames

    def start(self) -> Sequence[Any]:
        return self._initial

    def step(self, symbols: NDArray[np.int64], states: Sequence[Any], images: NDArray[np.int64]) -> StepOutput:
        if not np.array_equal(images, self._images):
            # One row of memory for every hypothesis; from step to step these seldom change.
            self._images, self._rows = images, [tensor[images] for tensor in self._frames]
        with self._timings.measure("infer"):
            return self._head.step([symbols, *self._rows, *states], details=self._details)


def _fill(tensor: Any) -> Any:  # noqa: ANN401  (an array, or rows on the device)
    """Gives rows on the device as many rows as they will have once some of them are picked."""
    return tensor.padded() if isinstance(tensor, Rows) else tensor


def _pad(value: Any, rows: int) -> Any:  # noqa: ANN401  (an array, or rows on the device)
    """Gives an array as many rows as those on the device have; what is beyond repeats the first."""
    if isinstance(value, Rows) or len(value) == rows:
        return value
    return np.concatenate([value, np.repeat(value[:1], rows - len(value), axis=0)])
