"""Decoding of an attention head: a loop over the decoder's step, greedy or with a beam, for many images at once.

A hypothesis is scored by its log-probability divided by Tᵅ, where T counts its symbols and its end. The search keeps,
for each image, the best unfinished hypotheses and the best finished ones, and stops when no unfinished one can still
get among those asked for. Two rules make results dependable:

- The path that greedy search would take always keeps a place in the beam: the best score is never below greedy's.
- A hypothesis of the maximum length either ends there, if that is what the network deems likeliest, or is a candidate
  as it stands, flagged as truncated. So there is always something to return.

A symbol's place is where the network looked when it wrote it: the mean of the attention over the frames, one standard
deviation to either side, and at least one frame in all.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from glyphline.models.decoding.distributions import FloatArray, calibrated_at, log_softmax, restrict
from glyphline.models.decoding.options import ResolvedOptions
from glyphline.models.decoding.readings import Hypothesis

__all__ = ["DecoderStep", "StepOutput", "decode_attention"]

END = 0


@dataclass(frozen=True, slots=True, eq=False)
class StepOutput:
    """What one step of the decoder gives.

    Attributes:
        log_probabilities: Of the next symbol, class 0 is the end (rows, symbols).
        attention: Where the decoder looked (rows, frames).
        states: The recurrent state after the step, each (rows, ...).
    """

    log_probabilities: FloatArray
    attention: FloatArray
    states: Sequence[FloatArray]


class DecoderStep(Protocol):
    """An attention decoder bound to a set of encoded images. Its rows are independent of one another."""

    def start(self) -> Sequence[FloatArray]:
        """Returns the initial recurrent state, each tensor (images, ...)."""

    def step(self, symbols: NDArray[np.int64], states: Sequence[FloatArray], images: NDArray[np.int64]) -> StepOutput:
        """Advances every row by one symbol.

        Args:
            symbols: What each row wrote last, the start symbol at first (rows).
            states: The recurrent state of each row, each (rows, ...).
            images: The image each row reads (rows), rising.
        """


def decode_attention(
    decoder: DecoderStep,
    lengths: NDArray[np.int64],
    start: int,
    options: ResolvedOptions,
    *,
    temperature: float = 1.0,
) -> list[list[Hypothesis]]:
    """Writes the texts of encoded images, symbol by symbol.

    Args:
        decoder: The decoder, bound to the images.
        lengths: Valid frames of each image (images).
        start: The class that stands for the start of a text.
        options: Search, restrictions and limits.
        temperature: Calibrates confidences. It has no part in the search.

    Returns:
        For each image its hypotheses, best first: at least one, at most `options.max_alternatives`, all different.
    """
    if not len(lengths):
        return []
    if options.beam_width == 1:
        return _greedy(decoder, lengths, start, options, temperature)
    return _BeamSearch(decoder, lengths, start, options, temperature).run()


def _greedy(
    decoder: DecoderStep, lengths: NDArray[np.int64], start: int, options: ResolvedOptions, temperature: float
) -> list[list[Hypothesis]]:
    written: list[list[_Written]] = [[] for _ in lengths]
    totals = [0.0] * len(lengths)
    closings: list[float | None] = [None] * len(lengths)
    images = np.arange(len(lengths))
    symbols = np.full(len(lengths), start)
    states = decoder.start()
    for position in range(options.max_output_length + 1):
        output = decoder.step(symbols, states, images)
        log_probabilities = restrict(output.log_probabilities.astype(np.float64), options.allowed)
        symbols = log_probabilities.argmax(axis=1)
        values = np.take_along_axis(log_probabilities, symbols[:, None], axis=1)[:, 0].tolist()
        chances = calibrated_at(log_probabilities, symbols, temperature).tolist()
        lefts, rights = (edge.tolist() for edge in _spans(output.attention, lengths[images]))
        for row, (image, symbol) in enumerate(zip(images.tolist(), symbols.tolist(), strict=True)):
            if symbol == END:
                totals[image] += values[row]
                closings[image] = chances[row]
            elif position < options.max_output_length:
                totals[image] += values[row]
                written[image].append(_Written(symbol, chances[row], (lefts[row], rights[row])))
        going = symbols != END
        if not going.any():
            break
        states = output.states
        if not going.all():
            images, symbols = images[going], symbols[going]
            states = [state[going] for state in states]
    return [
        [_hypothesis(parts, total, closing, options.length_penalty)]
        for parts, total, closing in zip(written, totals, closings, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Written:
    """A symbol as it was written.

    Attributes:
        symbol: Its class.
        chance: Its calibrated log-probability.
        span: Its first and last frame edge.
    """

    symbol: int
    chance: float
    span: tuple[float, float]


def _hypothesis(written: list[_Written], total: float, closing: float | None, penalty: float) -> Hypothesis:
    """Puts a hypothesis together; one without `closing` was truncated."""
    emitted = len(written) + (closing is not None)
    return Hypothesis(
        symbols=tuple(part.symbol for part in written),
        score=total / emitted**penalty,
        log_probability=total,
        symbol_log_probabilities=tuple(part.chance for part in written),
        closing_log_probability=closing,
        spans=tuple(part.span for part in written),
        truncated=closing is None,
    )


def _spans(attention: FloatArray, lengths: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """Turns attention (rows, frames) into first and last frame edges (rows), within the valid frames (rows)."""
    centres = np.arange(attention.shape[1]) + 0.5
    mass = attention.sum(axis=1, dtype=np.float64)
    mass[mass <= 0.0] = 1.0
    mean = attention @ centres / mass
    variance = attention @ centres**2 / mass - mean**2
    half = np.sqrt(np.maximum(variance, 0.25))
    return np.clip(mean - half, 0.0, lengths), np.clip(mean + half, 0.0, lengths)


@dataclass(frozen=True, slots=True, order=True)
class _Finished:
    """A hypothesis that needs nothing more; ordered by score, and of equals the earlier found is the better.

    Attributes:
        score: Normalised by length.
        age: Falls with every hypothesis found.
        total: Log-probability.
        position: Number of symbols.
        slot: Place in the beam of its last symbol.
        closing: Calibrated log-probability of its end, None if it was truncated.
    """

    score: float
    age: int
    total: float
    position: int
    slot: int
    closing: float | None


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """The symbols that entered the beams at one position, each (images, slots)."""

    symbols: NDArray[np.int64]
    parents: NDArray[np.int64]
    chances: FloatArray
    lefts: FloatArray
    rights: FloatArray

    @classmethod
    def blank(cls, images: int, slots: int) -> "_Layer":
        shape = images, slots
        integers = np.zeros((2, *shape), dtype=np.int64)
        floats = np.zeros((3, *shape))
        return cls(*integers, *floats)


class _BeamSearch:
    """One search over a batch of images. Images leave as they are done; all beams have the same width at a time."""

    def __init__(
        self, decoder: DecoderStep, lengths: NDArray[np.int64], start: int, options: ResolvedOptions, temperature: float
    ) -> None:
        count = len(lengths)
        self._decoder = decoder
        self._lengths = lengths
        self._options = options
        self._temperature = temperature
        self._layers: list[_Layer] = []
        self._finished: list[list[_Finished]] = [[] for _ in range(count)]  # heaps, the worst on top
        self._found = 0
        # Of the images still searched:
        self._images = np.arange(count)
        self._symbols = np.full((count, 1), start)  # (images, slots)
        self._totals = np.zeros((count, 1))  # (images, slots), -inf where a slot is empty
        self._greedy = np.zeros(count, dtype=np.int64)  # (images), slot of the greedy path, -1 once it has ended
        self._states = decoder.start()  # each (images × slots, ...)

    def run(self) -> list[list[Hypothesis]]:
        longest = self._options.max_output_length
        for position in range(longest + 1):
            output = self._decoder.step(
                self._symbols.ravel(), self._states, np.repeat(self._images, self._symbols.shape[1])
            )
            shape = *self._symbols.shape, -1
            log_probabilities = restrict(output.log_probabilities.astype(np.float64), self._options.allowed)
            chances = log_probabilities
            if self._temperature != 1.0:
                chances = log_softmax(log_probabilities / self._temperature)
            log_probabilities, chances = log_probabilities.reshape(shape), chances.reshape(shape)
            if position == longest:
                self._close(log_probabilities, chances, position)
                break
            totals = self._totals[:, :, None] + log_probabilities
            self._collect(totals[:, :, END], chances[:, :, END], position)
            self._advance(totals, log_probabilities, chances, output)
            self._retire()
            if not len(self._images):
                break
        return [
            [self._trace(image, item) for item in sorted(found, reverse=True)]
            for image, found in enumerate(self._finished)
        ]

    def _keep(self, image: int, position: int, slot: int, total: float, closing: float | None) -> None:
        """Adds a finished hypothesis to the best of an image."""
        emitted = position + (closing is not None)
        score = total / emitted**self._options.length_penalty
        self._found -= 1
        item = _Finished(score, self._found, total, position, slot, closing)
        heap = self._finished[image]
        if len(heap) < self._options.max_alternatives:
            heapq.heappush(heap, item)
        else:
            heapq.heappushpop(heap, item)

    def _bars(self) -> NDArray[np.float64]:
        """Score that a hypothesis must pass to be among those asked for (images)."""
        most = self._options.max_alternatives
        heaps = (self._finished[image] for image in self._images.tolist())
        return np.array([heap[0].score if len(heap) == most else -np.inf for heap in heaps])

    def _collect(self, totals: FloatArray, chances: FloatArray, position: int) -> None:
        """Takes the hypotheses that end after `position` symbols; both arrays are (images, slots)."""
        scores = totals / (position + 1) ** self._options.length_penalty
        for row, slot in zip(*(scores > self._bars()[:, None]).nonzero(), strict=True):
            total, closing = float(totals[row, slot]), float(chances[row, slot])
            self._keep(int(self._images[row]), position, int(slot), total, min(closing, 0.0))

    def _close(self, log_probabilities: FloatArray, chances: FloatArray, position: int) -> None:
        """Takes every hypothesis of the maximum length; both arrays are (images, slots, symbols)."""
        ends = log_probabilities.argmax(axis=2) == END
        for row, slot in zip(*np.isfinite(self._totals).nonzero(), strict=True):
            total, closing = float(self._totals[row, slot]), None
            if ends[row, slot]:
                total += float(log_probabilities[row, slot, END])
                closing = min(float(chances[row, slot, END]), 0.0)
            self._keep(int(self._images[row]), position, int(slot), total, closing)

    def _advance(
        self, totals: FloatArray, log_probabilities: FloatArray, chances: FloatArray, output: StepOutput
    ) -> None:
        """Fills the beams with the best continuations; the first three arrays are (images, slots, symbols)."""
        images, slots, size = totals.shape
        continued: NDArray[np.float64] = totals[:, :, 1:].reshape(images, -1).astype(np.float64, copy=False)
        width = min(self._options.beam_width, continued.shape[1])
        chosen = np.argpartition(continued, -width, axis=1)[:, -width:]  # (images, width)
        order = np.argsort(-np.take_along_axis(continued, chosen, axis=1), axis=1, kind="stable")
        chosen = np.take_along_axis(chosen, order, axis=1)
        self._follow_greedy(chosen, log_probabilities)

        rows = np.arange(images)[:, None]
        parents, symbols = chosen // (size - 1), chosen % (size - 1) + 1
        lefts, rights = _spans(output.attention, np.repeat(self._lengths[self._images], slots))
        layer = _Layer.blank(len(self._lengths), width)
        layer.symbols[self._images] = symbols
        layer.parents[self._images] = parents
        layer.chances[self._images] = np.minimum(chances[rows, parents, symbols], 0.0)
        layer.lefts[self._images] = lefts.reshape(images, slots)[rows, parents]
        layer.rights[self._images] = rights.reshape(images, slots)[rows, parents]
        self._layers.append(layer)

        self._totals = np.take_along_axis(continued, chosen, axis=1)
        self._symbols = symbols
        # The recurrent state goes with the hypothesis: each slot takes over that of its parent.
        origin = (rows * slots + parents).ravel()
        self._states = [state[origin] for state in output.states]

    def _follow_greedy(self, chosen: NDArray[np.int64], log_probabilities: FloatArray) -> None:
        """Makes sure that the greedy path is among the chosen continuations, in the place of the worst if need be.

        Args:
            chosen: Continuations, best first (images, width); changed in place.
            log_probabilities: (images, slots, symbols).
        """
        images, _, size = log_probabilities.shape
        rows = np.arange(images)
        symbols = log_probabilities[rows, self._greedy].argmax(axis=1)
        going = (self._greedy >= 0) & (symbols != END)
        wanted = self._greedy * (size - 1) + symbols - 1
        present = chosen == wanted[:, None]
        lost = going & ~present.any(axis=1)
        chosen[lost, -1] = wanted[lost]
        present[lost, -1] = True
        self._greedy = np.where(going, present.argmax(axis=1), -1)

    def _retire(self) -> None:
        """Lets go of the images whose unfinished hypotheses can no longer get among those asked for.

        A log-probability only falls, and is divided by at most the power of the greatest length.
        """
        reachable = self._totals.max(axis=1) / (self._options.max_output_length + 1) ** self._options.length_penalty
        going = reachable > self._bars()
        if going.all():
            return
        slots = self._symbols.shape[1]
        self._images, self._symbols = self._images[going], self._symbols[going]
        self._totals, self._greedy = self._totals[going], self._greedy[going]
        rows = np.repeat(going, slots)
        self._states = [state[rows] for state in self._states]

    def _trace(self, image: int, item: _Finished) -> Hypothesis:
        """Follows a hypothesis back to its first symbol."""
        written = []
        slot = item.slot
        for layer in reversed(self._layers[: item.position]):
            place = image, slot
            span = float(layer.lefts[place]), float(layer.rights[place])
            written.append(_Written(int(layer.symbols[place]), float(layer.chances[place]), span))
            slot = int(layer.parents[place])
        return _hypothesis(written[::-1], item.total, item.closing, self._options.length_penalty)
