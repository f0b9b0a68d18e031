"""Decoding of the heads that write step by step: a loop over the step, greedy or with a beam, for many images at once.

A hypothesis is scored by its log-probability divided by Tᵅ, where T counts its symbols and its end. The search keeps,
for each image, the best unfinished hypotheses and the best finished ones. It stops when no unfinished one can ever
become the best, nor is one about to get among the alternatives asked for. Two rules make results dependable:

- The path that greedy search would take always keeps a place in the beam: the best score is never below greedy's.
- A hypothesis of the maximum length either ends there, if that is what the network deems likeliest, or is a candidate
  as it stands, flagged as truncated. So there is always something to return.

A symbol's place is where an attention head looked when it wrote it: the shortest stretch of frames that holds three
quarters of the attention. A mean would be drawn away by the little that networks spend on what they read before. Heads
that do not look at frames know of no places. Places are found only for those who ask for the details of symbols: they
take longer than all else that is done for a symbol.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from glyphline.models.decoding.distributions import FloatArray, restrict
from glyphline.models.decoding.history import END, History
from glyphline.models.decoding.options import ResolvedOptions
from glyphline.models.decoding.readings import Hypothesis

__all__ = ["DecoderStep", "StepOutput", "decode_attention"]


@dataclass(frozen=True, slots=True, eq=False)
class StepOutput:
    """What one step of the decoder gives.

    Attributes:
        log_probabilities: Of the next symbol, class 0 is the end (rows, symbols).
        attention: Where the decoder looked (rows, frames); None if it does not look at frames.
        states: The recurrent state after the step, each (rows, ...): arrays, or whatever else can be indexed by rows.
    """

    log_probabilities: FloatArray
    attention: FloatArray | None
    states: Sequence[Any]


class DecoderStep(Protocol):
    """A step-wise decoder bound to a set of encoded images. Its rows are independent of one another."""

    def start(self) -> Sequence[Any]:
        """Returns the initial recurrent state, each tensor (images, ...)."""

    def step(self, symbols: NDArray[np.int64], states: Sequence[Any], images: NDArray[np.int64]) -> StepOutput:
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
    if options.beam_width == 1 and options.guide is None:
        return _greedy(decoder, lengths, start, options, temperature)
    return _BeamSearch(decoder, lengths, start, options, temperature).run()


def _greedy(
    decoder: DecoderStep, lengths: NDArray[np.int64], start: int, options: ResolvedOptions, temperature: float
) -> list[list[Hypothesis]]:
    history = History(lengths, options.length_penalty, temperature)
    written: list[list[int]] = [[] for _ in lengths]
    rows: list[list[int]] = [[] for _ in lengths]
    totals = [0.0] * len(lengths)
    images = np.arange(len(lengths))
    symbols = np.full(len(lengths), start)
    states = decoder.start()
    for position in range(options.max_output_length + 1):
        output = decoder.step(symbols, states, images)
        log_probabilities = restrict(output.log_probabilities.astype(np.float64), options.allowed)
        history.add(log_probabilities, output.attention if options.token_details else None)
        symbols = log_probabilities.argmax(axis=1)
        values = log_probabilities[np.arange(len(symbols)), symbols].tolist()
        for row, (image, symbol) in enumerate(zip(images.tolist(), symbols.tolist(), strict=True)):
            if symbol != END and position == options.max_output_length:
                continue  # it is cut here
            rows[image].append(row)
            totals[image] += values[row]
            if symbol != END:
                written[image].append(symbol)
        going = symbols != END
        if not going.any():
            break
        states = output.states
        if not going.all():
            images, symbols = images[going], symbols[going]
            states = [state[going] for state in states]
    return [[history.hypothesis(image, written[image], rows[image], totals[image])] for image in range(len(lengths))]


@dataclass(frozen=True, slots=True, order=True)
class _Finished:
    """A hypothesis that needs nothing more; ordered by score, and of equals the earlier found is the better.

    Attributes:
        score: Normalised by length.
        age: Falls with every hypothesis found.
        total: Log-probability, with what a guide adds.
        position: Number of symbols.
        slot: Place in the beam of its last symbol.
        row: The row that wrote its end, None if it was truncated.
    """

    score: float
    age: int
    total: float
    position: int
    slot: int
    row: int | None


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """The symbols that entered the beams at one position, each array (images, slots).

    Attributes:
        symbols: What was written.
        parents: The slot at the position before that each continues.
        rows: The decoder's row that wrote it.
    """

    symbols: NDArray[np.int64]
    parents: NDArray[np.int64]
    rows: NDArray[np.int64]


class _BeamSearch:
    """One search over a batch of images. Images leave as they are done; all beams have the same width at a time."""

    def __init__(
        self, decoder: DecoderStep, lengths: NDArray[np.int64], start: int, options: ResolvedOptions, temperature: float
    ) -> None:
        count = len(lengths)
        self._decoder = decoder
        self._options = options
        self._guide = options.guide
        self._history = History(lengths, options.length_penalty, temperature, guided=self._guide is not None)
        self._layers: list[_Layer] = []
        self._finished: list[list[_Finished]] = [[] for _ in range(count)]  # heaps, the worst on top
        self._best = np.full(count, -np.inf)  # score of the best finished hypothesis
        self._found = 0
        # Of the images still searched:
        self._images = np.arange(count)
        self._symbols = np.full((count, 1), start)  # (images, slots)
        self._totals: FloatArray = np.zeros((count, 1))  # (images, slots), -inf where a slot is empty
        self._greedy = np.zeros(count, dtype=np.int64)  # (images), slot of the greedy path, -1 once it has ended
        self._states = decoder.start()  # each (images × slots, ...)
        self._places = [[0 if self._guide is None else self._guide.start]] * count  # the guide's states [image][slot]

    def run(self) -> list[list[Hypothesis]]:
        """Searches, and returns the best hypotheses of each image."""
        longest = self._options.max_output_length
        for position in range(longest + 1):
            images, slots = self._symbols.shape
            output = self._decoder.step(self._symbols.ravel(), self._states, np.repeat(self._images, slots))
            log_probabilities = restrict(output.log_probabilities.astype(np.float64), self._options.allowed)
            self._history.add(log_probabilities, output.attention if self._options.token_details else None)
            log_probabilities = log_probabilities.reshape(images, slots, -1)
            guided = self._steer(log_probabilities, position)
            if position == longest:
                self._close(guided, position)
                break
            totals = self._totals[:, :, None] + guided
            self._collect(totals[:, :, END], position)
            self._advance(totals, log_probabilities, output.states)
            self._retire(position + 1)
            if not len(self._images):
                break
        return [
            [self._trace(image, item) for item in sorted(found, reverse=True)]
            for image, found in enumerate(self._finished)
        ]

    def _steer(self, log_probabilities: FloatArray, position: int) -> FloatArray:
        """Adds what the guide gives to log-probabilities (images, slots, symbols)."""
        guide = self._guide
        if guide is None:
            return log_probabilities
        guided: FloatArray = log_probabilities + np.array([[guide.row(each) for each in row] for row in self._places])
        if position == 0 and guide.closed:
            # A lexicon does not forbid the empty text to an image that has no writing.
            blank = log_probabilities[:, 0].argmax(axis=1) == END
            guided[blank, 0, END] = log_probabilities[blank, 0, END] + guide.empty
        return guided

    def _keep(self, place: tuple[int, int], position: int, total: float, *, ended: bool) -> None:
        """Puts a finished hypothesis among the best of its image; `place` is its image among the searched, and slot."""
        index, slot = place
        score = total / (position + ended) ** self._options.length_penalty
        self._found -= 1
        row = index * self._symbols.shape[1] + slot if ended else None
        item = _Finished(score, self._found, total, position, slot, row)
        image = int(self._images[index])
        self._best[image] = max(self._best[image], score)
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

    def _collect(self, totals: FloatArray, position: int) -> None:
        """Takes the hypotheses that end after `position` symbols, with `totals` (images, slots)."""
        scores = totals / (position + 1) ** self._options.length_penalty
        better = (scores > self._bars()[:, None]).nonzero()
        for index, slot in zip(*(axis.tolist() for axis in better), strict=True):
            self._keep((index, slot), position, float(totals[index, slot]), ended=True)

    def _close(self, log_probabilities: FloatArray, position: int) -> None:
        """Takes every hypothesis of the maximum length; (images, slots, symbols).

        Of a lexicon's words none is cut if there are whole ones.
        """
        ends = log_probabilities.argmax(axis=2) == END
        if self._guide is not None and self._guide.closed:
            ends = np.isfinite(log_probabilities[:, :, END])
        totals = self._totals + np.where(ends, log_probabilities[:, :, END], 0.0)
        if self._guide is not None and self._guide.closed:
            whole = (ends & np.isfinite(totals)).any(axis=1) | np.isfinite(self._best[self._images])
            totals[whole[:, None] & ~ends] = -np.inf
        for index, slot in zip(*(axis.tolist() for axis in np.isfinite(totals).nonzero()), strict=True):
            self._keep((index, slot), position, float(totals[index, slot]), ended=bool(ends[index, slot]))

    def _advance(self, totals: FloatArray, log_probabilities: FloatArray, states: Sequence[Any]) -> None:
        """Fills the beams with the best continuations; both arrays are (images, slots, symbols)."""
        images, slots, size = totals.shape
        continued = totals[:, :, 1:].reshape(images, -1)
        width = min(self._options.beam_width, continued.shape[1])
        index = np.arange(images)[:, None]
        chosen = np.argpartition(continued, -width, axis=1)[:, -width:]  # (images, width)
        chosen = chosen[index, np.argsort(-continued[index, chosen], axis=1, kind="stable")]
        self._follow_greedy(chosen, log_probabilities, np.isfinite(continued))

        parents, symbols = chosen // (size - 1), chosen % (size - 1) + 1
        rows = index * slots + parents
        layer = np.zeros((3, len(self._finished), width), dtype=np.int64)
        layer[:, self._images] = symbols, parents, rows
        self._layers.append(_Layer(*layer))
        self._symbols, self._totals = symbols, continued[index, chosen]
        if self._guide is not None:
            self._places = self._follow(parents, symbols)
        # The recurrent state goes with the hypothesis: each slot takes over that of its parent.
        origin = rows.ravel()
        self._states = [state[origin] for state in states]

    def _follow(self, parents: NDArray[np.int64], symbols: NDArray[np.int64]) -> list[list[int]]:
        """Returns the guide's state of each slot after its new symbol; of an empty slot any; both (images, slots)."""
        guide = self._guide
        assert guide is not None
        return [
            [
                guide.follow(places[parent], symbol) if possible else guide.start
                for parent, symbol, possible in zip(*row, strict=True)
            ]
            for places, *row in zip(
                self._places, parents.tolist(), symbols.tolist(), np.isfinite(self._totals).tolist(), strict=True
            )
        ]

    def _follow_greedy(
        self, chosen: NDArray[np.int64], log_probabilities: FloatArray, possible: NDArray[np.bool_]
    ) -> None:
        """Makes sure that the greedy path is among the chosen continuations, in the place of the worst if need be.

        Args:
            chosen: Continuations, best first (images, width); changed in place.
            log_probabilities: The network's (images, slots, symbols).
            possible: Which continuations a guide leaves (images, slots × symbols but the end).
        """
        images, _, size = log_probabilities.shape
        symbols = log_probabilities[np.arange(images), self._greedy].argmax(axis=1)
        going = (self._greedy >= 0) & (symbols != END)
        wanted = self._greedy * (size - 1) + symbols - 1
        going[going] = possible[going, wanted[going]]
        present = chosen == wanted[:, None]
        lost = going & ~present.any(axis=1)
        chosen[lost, -1] = wanted[lost]
        present[lost, -1] = True
        self._greedy = np.where(going, present.argmax(axis=1), -1)

    def _retire(self, written: int) -> None:
        """Lets go of the images that are done, after `written` symbols.

        A log-probability only falls, and is divided by at most the power of the greatest length: that bounds what can
        become the best. For the other alternatives the bound would be far too loose, and the search would go on to the
        maximum length for every image; they are settled once no hypothesis would get among them by ending now.
        """
        totals, penalty = self._totals.max(axis=1), self._options.length_penalty
        going = self._bound(totals, written) > self._best[self._images]
        if self._options.max_alternatives > 1:
            going |= totals / (written + 1) ** penalty > self._bars()
        if going.all():
            return
        rows = np.repeat(going, self._symbols.shape[1])
        self._images, self._symbols = self._images[going], self._symbols[going]
        self._totals, self._greedy = self._totals[going], self._greedy[going]
        self._states = [state[rows] for state in self._states]
        self._places = [places for places, kept in zip(self._places, going.tolist(), strict=True) if kept]

    def _bound(self, totals: FloatArray, written: int) -> FloatArray:
        """Returns the best score that unfinished hypotheses may come to (images), which a bonus may raise above now's.

        Args:
            totals: Of the best unfinished hypothesis of each image (images).
            written: Symbols they have.
        """
        longest, penalty = self._options.max_output_length, self._options.length_penalty
        bonus = 0.0 if self._guide is None else max(self._guide.bonus, 0.0)
        further = np.arange(longest - written + 1)
        if not bonus:
            further = further[-1:]
        scores: FloatArray = (totals[:, None] + bonus * further) / (written + further + 1) ** penalty
        best: FloatArray = scores.max(axis=1)
        return best

    def _trace(self, image: int, item: _Finished) -> Hypothesis:
        """Follows a hypothesis back to its first symbol."""
        symbols, rows = [], [] if item.row is None else [item.row]
        slot = item.slot
        for layer in reversed(self._layers[: item.position]):
            symbols.append(int(layer.symbols[image, slot]))
            rows.append(int(layer.rows[image, slot]))
            slot = int(layer.parents[image, slot])
        return self._history.hypothesis(image, symbols[::-1], rows[::-1], item.total)
