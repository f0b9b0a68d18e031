"""Texts laid over CTC frames: how likely a text is over all its paths, and where its likeliest path puts each symbol.

Both walk the same lattice. A text of n symbols has 2n + 1 states: a blank, then each symbol followed by a blank. A path
starts in one of the first two states, ends in one of the last two, and moves by zero, one or two states a frame; two
only over a blank between different symbols.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glyphline.models.decoding.distributions import FloatArray

__all__ = ["align", "score_texts"]

_RESCALE_EVERY = 32  # frames; a step at most triples a value, and values near the best path's do not shrink
_LARGEST_LATTICE = 4_000_000  # cells of texts worked on together
_STRETCH = 500_000  # cells of them whose frames are worked on at once

Text = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Lattice:
    """The states of several texts, each over the frames of its image, longest image first.

    Attributes:
        order: Position in the caller's list of each text (texts).
        lengths: Frames of each text's image (texts), falling.
        ends: Index of the last state of each text (texts).
        skips: Whether a state is reached over the blank before it (texts, states).
        log_probabilities: (images, frames, symbols).
        images: The image of each text (texts).
        states: Symbol of each state (texts, states).
    """

    order: NDArray[np.int64]
    lengths: NDArray[np.int64]
    ends: NDArray[np.int64]
    skips: NDArray[np.bool_]
    log_probabilities: FloatArray
    images: NDArray[np.int64]
    states: NDArray[np.int64]

    @property
    def frames(self) -> int:
        """Frames of the longest image."""
        return int(self.lengths.max())

    @property
    def stretch(self) -> int:
        """Frames that are worked on at once, so that a long line takes no more memory than many short strips."""
        return max(1, _STRETCH // self.states.size)

    def emissions(self, begin: int, end: int) -> FloatArray:
        """Returns the log-probability of each state's symbol in some frames (frames, texts, states)."""
        frames = np.arange(begin, min(end, self.frames))
        found = self.log_probabilities[self.images[None, :, None], frames[:, None, None], self.states[None]]
        return found.astype(np.float64)


def _build(
    log_probabilities: FloatArray, lengths: NDArray[np.int64], rows: Sequence[int], texts: list[Text]
) -> _Lattice:
    images = np.asarray(rows, dtype=np.int64)
    order = np.argsort(-lengths[images], kind="stable")
    images = images[order]
    counts = np.array([len(text) for text in texts], dtype=np.int64)[order]
    states = np.zeros((len(texts), 2 * int(counts.max()) + 1), dtype=np.int64)  # (texts, states), blanks
    for position, text in enumerate(order.tolist()):
        if texts[text]:
            states[position, 1 : 2 * len(texts[text]) : 2] = texts[text]
    skips = np.zeros(states.shape, dtype=bool)
    skips[:, 3::2] = (states[:, 3::2] != states[:, 1:-2:2]) & (states[:, 3::2] != 0)
    return _Lattice(
        order=order,
        lengths=lengths[images],
        ends=2 * counts,
        skips=skips,
        log_probabilities=log_probabilities,
        images=images,
        states=states,
    )


def score_texts(
    log_probabilities: FloatArray, lengths: NDArray[np.int64], rows: Sequence[int], texts: list[Text]
) -> NDArray[np.float64]:
    """Computes the log-probability of texts, summed over all their paths (the forward algorithm).

    Args:
        log_probabilities: (images, frames, symbols).
        lengths: Valid frames of each image (images).
        rows: The image each text belongs to (texts).
        texts: The texts as network classes.

    Returns:
        (texts), -inf for a text that the frames have no room for.
    """
    scores = np.empty(len(texts))
    step = _texts_at_once(log_probabilities, texts)
    for begin in range(0, len(texts), step):
        part = slice(begin, begin + step)
        scores[part] = _forward(_build(log_probabilities, lengths, rows[part], texts[part]))
    return scores


def _forward(lattice: _Lattice) -> NDArray[np.float64]:
    """Sums over paths with linear probabilities, each frame's relative to its likeliest state."""
    texts, states = lattice.states.shape
    scores = np.full(texts, -np.inf)
    scores[(lattice.lengths == 0) & (lattice.ends == 0)] = 0.0
    # Two columns of zeros before the first state, so that moves by one and two states are plain slices.
    sums = np.zeros((texts, states + 2))
    moved = np.empty((texts, states))
    stay, one, two = sums[:, 2:], sums[:, 1:-1], sums[:, :-2]
    skips = lattice.skips.astype(np.float64)
    divided = np.zeros(texts)  # logarithms of what was divided out
    last_frames = lattice.lengths - 1
    finishing = {int(frame): (last_frames == frame).nonzero()[0] for frame in np.unique(last_frames) if frame >= 0}
    for begin in range(0, lattice.frames, lattice.stretch):
        emissions = lattice.emissions(begin, begin + lattice.stretch)
        peaks = emissions.max(axis=2)
        peaks = np.where(np.isneginf(peaks), 0.0, peaks)
        chances = np.exp(emissions - peaks[:, :, None])
        logarithms = divided + np.cumsum(peaks, axis=0)  # (frames, texts)
        rescaled = np.zeros(texts)
        with np.errstate(divide="ignore"):
            for frame, chance in enumerate(chances, begin):
                if frame:
                    np.multiply(two, skips, out=moved)
                    moved += one
                    moved += stay
                    np.multiply(moved, chance, out=stay)
                else:
                    stay[:, :2] = chance[:, :2]
                done = finishing.get(frame)
                if done is not None:
                    ends = lattice.ends[done]
                    total = stay[done, ends] + np.where(ends > 0, one[done, ends], 0.0)
                    scores[done] = np.log(total) + logarithms[frame - begin, done] + rescaled[done]
                if frame % _RESCALE_EVERY == _RESCALE_EVERY - 1:
                    scale = sums.max(axis=1)
                    scale[scale == 0.0] = 1.0
                    sums /= scale[:, None]
                    rescaled += np.log(scale)
        divided = logarithms[-1] + rescaled
    result = np.empty(texts)
    result[lattice.order] = scores
    return result


def align(
    log_probabilities: FloatArray, lengths: NDArray[np.int64], rows: Sequence[int], texts: list[Text]
) -> NDArray[np.int64]:
    """Finds the likeliest path of each text (the Viterbi algorithm).

    Args:
        log_probabilities: (images, frames, symbols).
        lengths: Valid frames of each image (images).
        rows: The image each text belongs to (texts).
        texts: The texts as network classes, each possible within its frames.

    Returns:
        The state of each frame (texts, frames): 2i + 1 while in symbol i, even in blanks, 0 beyond the image's frames.
    """
    paths = np.zeros((len(texts), log_probabilities.shape[1]), dtype=np.int64)
    step = _texts_at_once(log_probabilities, texts)
    for begin in range(0, len(texts), step):
        part = slice(begin, begin + step)
        _viterbi(_build(log_probabilities, lengths, rows[part], texts[part]), paths[part])
    return paths


def _viterbi(lattice: _Lattice, paths: NDArray[np.int64]) -> None:
    """Writes the likeliest states into `paths` (texts, frames)."""
    frames = lattice.frames
    if not frames:
        return
    texts, states = lattice.states.shape
    barrier = np.where(lattice.skips, 0.0, -np.inf)
    moves = np.zeros((frames - 1, texts, states), dtype=np.int8)  # states advanced on entering, at all but the first
    finals = np.empty((texts, states))  # of each text, at the last frame of its image
    previous = np.full((texts, states + 2), -np.inf)
    previous[:, 2:4] = lattice.emissions(0, 1)[0, :, :2]
    finals[lattice.lengths == 1] = previous[lattice.lengths == 1, 2:]
    for begin in range(1, frames, lattice.stretch):
        emissions = lattice.emissions(begin, begin + lattice.stretch)
        # Two columns of impossibility before the first state, so that moves by one and two states are plain slices.
        best = np.full((len(emissions) + 1, texts, states + 2), -np.inf)
        best[0] = previous
        stay, one, two = best[:, :, 2:], best[:, :, 1:-1], best[:, :, :-2]
        for offset, emission in enumerate(emissions):
            here = stay[offset + 1]
            np.add(two[offset], barrier, out=here)
            np.maximum(here, one[offset], out=here)
            np.maximum(here, stay[offset], out=here)
            here += emission
        advanced = (one > stay)[:-1].astype(np.int8)
        advanced[two[:-1] + barrier > np.maximum(one, stay)[:-1]] = 2
        moves[begin - 1 : begin - 1 + len(emissions)] = advanced
        ending = (lattice.lengths > begin) & (lattice.lengths <= begin + len(emissions))
        finals[ending] = stay[lattice.lengths[ending] - begin, ending.nonzero()[0]]
        previous = best[-1]

    for position, (text, length, end) in enumerate(
        zip(lattice.order.tolist(), lattice.lengths.tolist(), lattice.ends.tolist(), strict=True)
    ):
        if not length:
            continue
        final = finals[position]
        state = end - 1 if end and final[end - 1] > final[end] else end
        walked = moves[: length - 1, position].tobytes()
        path = [state]
        for offset in range((length - 2) * states, -1, -states):
            state -= walked[offset + state]
            path.append(state)
        paths[text, :length] = path[::-1]


def _texts_at_once(log_probabilities: FloatArray, texts: list[Text]) -> int:
    """How many texts make a lattice of bounded size."""
    cells: int = log_probabilities.shape[1] * (2 * max(map(len, texts), default=0) + 1)
    return max(1, _LARGEST_LATTICE // max(cells, 1))
