"""CTC prefix beam search (Graves 2012, Hannun 2014).

CTC reads a text from a path of one symbol a frame by merging repeats and dropping blanks, so a text's probability is
the sum over many paths. The search walks the frames and keeps, for each of the best prefixes, the probability of all
paths that spell it, apart for paths that end in a blank and in the prefix's last symbol: after a blank the same symbol
again is a second one, without a blank it is still the first.

Probabilities are linear and only ever compared within a frame, so they are rescaled when they get small.
"""

from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from glyphline.models.decoding.distributions import FloatArray

__all__ = ["Pruning", "frame_candidates", "prefix_beam_search"]

_RESCALE_BELOW = 1e-100
_total = itemgetter(0)

# A prefix of the beam: (probability, prefix, of it after a blank, of it after the prefix's last symbol).
_Entry = tuple[float, int, float, float]


@dataclass(frozen=True, slots=True)
class Pruning:
    """What the search leaves out to be fast. All zero with many candidates leaves out nothing.

    Attributes:
        threshold: A symbol less likely than this in a frame is not considered there. On the peaky outputs of a trained
            network this leaves one symbol in most frames, often none but the blank.
        candidates: Most symbols considered in a frame; bounds the cost on outputs that are not peaky.
        margin: A prefix less likely than this share of the best one is dropped.
    """

    threshold: float = 1e-4
    candidates: int = 12
    margin: float = 1e-7


class _Prefixes:
    """A trie of prefixes. Prefix 0 is the empty one; a prefix found again is the same prefix."""

    __slots__ = ("children", "parents", "size", "symbols")

    def __init__(self, size: int) -> None:
        self.size = size
        self.parents = [-1]
        self.symbols = [0]
        self.children: dict[int, int] = {}

    def extend(self, prefix: int, symbol: int) -> int:
        key = prefix * self.size + symbol
        child = self.children.get(key)
        if child is None:
            child = self.children[key] = len(self.parents)
            self.parents.append(prefix)
            self.symbols.append(symbol)
        return child

    def spell(self, prefix: int) -> tuple[int, ...]:
        reversed_symbols = []
        while prefix:
            reversed_symbols.append(self.symbols[prefix])
            prefix = self.parents[prefix]
        return tuple(reversed_symbols[::-1])


def prefix_beam_search(log_probabilities: FloatArray, width: int, pruning: Pruning) -> dict[tuple[int, ...], float]:
    """Finds the likeliest texts of one image.

    Args:
        log_probabilities: (frames, symbols), class 0 is the blank.
        width: Prefixes kept from frame to frame.
        pruning: What to leave out.

    Returns:
        At most `width` texts as network classes, best first, each with the probability the search summed for it, up to
        a factor that is common to all.
    """
    frames, size = log_probabilities.shape
    prefixes = _Prefixes(size)
    beam = [(1.0, 0, 1.0, 0.0)]
    if not frames:
        return {(): 1.0}
    probabilities = np.exp(log_probabilities, dtype=np.float64)
    blanks = probabilities[:, 0].tolist()
    for blank, likely in zip(blanks, frame_candidates(probabilities, pruning), strict=True):
        if likely:
            beam = _advance(beam, blank, likely, prefixes, (width, pruning.margin))
        elif len(beam) > 1 or beam[0][3]:
            # Only the blank is likely: every prefix keeps its probability up to a factor common to all.
            beam = [(total, prefix, total, 0.0) for total, prefix, _, _ in beam]
    return {prefixes.spell(prefix): total for total, prefix, _, _ in beam}


def frame_candidates(probabilities: FloatArray, pruning: Pruning) -> list[list[tuple[int, float]]]:
    """Lists for every frame the likely symbols other than the blank, likeliest first, as (symbol, probability)."""
    size = probabilities.shape[1]
    threshold = min(pruning.threshold, 0.5 / size)  # the likeliest symbol of a frame always passes
    considered = probabilities[:, 1:]
    frames: list[list[tuple[int, float]]] = [[] for _ in range(len(probabilities))]
    likely = considered >= threshold
    if threshold <= 0.0:
        likely &= considered > 0.0
    if int(likely.sum(axis=1).max()) > pruning.candidates:
        kept = np.argpartition(considered, -pruning.candidates, axis=1)[:, -pruning.candidates :]
        among = np.zeros_like(likely)
        np.put_along_axis(among, kept, True, axis=1)
        likely &= among
    where = likely.nonzero()
    values = considered[where].tolist()
    for frame, symbol, value in zip(where[0].tolist(), where[1].tolist(), values, strict=True):
        frames[frame].append((symbol + 1, value))
    for candidates in frames:
        if len(candidates) > 1:
            candidates.sort(key=itemgetter(1), reverse=True)
    return frames


def _advance(
    beam: list[_Entry], blank: float, likely: list[tuple[int, float]], prefixes: _Prefixes, bounds: tuple[int, float]
) -> list[_Entry]:
    """Moves the beam over one frame.

    The prefixes already in the beam come first, with all that flows into them. What the weakest of a full beam then has
    is a bar for new prefixes, since a new prefix has no other source than its one parent: most extensions need not even
    be listed, and nothing is lost by it.
    """
    width, margin = bounds
    members = {entry[1]: entry for entry in beam}
    moved = _stay(beam, members, blank, dict(likely), prefixes)
    bar = max(moved)[0] * margin
    if len(moved) >= width:
        bar = max(bar, min(moved)[0])
    extended = _extend(beam, members, likely, prefixes, bar)
    if len(extended) > width:
        extended.sort(reverse=True)
        del extended[width:]
    for value, prefix, symbol in extended:
        moved.append((value, prefixes.extend(prefix, symbol), 0.0, value))
    if len(moved) > 1:
        moved.sort(key=_total, reverse=True)
        bar = moved[0][0] * margin
        del moved[width:]
        while moved[-1][0] <= bar:
            moved.pop()
    if moved[0][0] < _RESCALE_BELOW:
        scale = 1.0 / moved[0][0]
        moved = [(total * scale, prefix, first * scale, second * scale) for total, prefix, first, second in moved]
    return moved


def _stay(
    beam: list[_Entry], members: dict[int, _Entry], blank: float, chances: dict[int, float], prefixes: _Prefixes
) -> list[_Entry]:
    """Gives each prefix of the beam what it has after the frame: from itself, and from its parent if that is in too."""
    parents, symbols = prefixes.parents, prefixes.symbols
    moved = []
    for total, prefix, _, after_symbol in beam:
        last = symbols[prefix]
        new_after_blank = total * blank
        new_after_symbol = 0.0
        if last in chances:
            incoming = after_symbol
            parent = members.get(parents[prefix])
            if parent is not None:
                incoming += parent[2] if symbols[parent[1]] == last else parent[0]
            new_after_symbol = incoming * chances[last]
        moved.append((new_after_blank + new_after_symbol, prefix, new_after_blank, new_after_symbol))
    return moved


def _extend(
    beam: list[_Entry], members: dict[int, _Entry], likely: list[tuple[int, float]], prefixes: _Prefixes, bar: float
) -> list[tuple[float, int, int]]:
    """Lists the new prefixes above the bar as (probability, parent, symbol)."""
    symbols, children, size = prefixes.symbols, prefixes.children, prefixes.size
    highest = likely[0][1]
    extended = []
    for total, prefix, after_blank, _ in beam:
        if total * highest <= bar:
            break  # the beam is in order: no later prefix can pass either
        last = symbols[prefix]
        key = prefix * size
        for symbol, probability in likely:
            if symbol == last:
                value = after_blank * probability
                if value <= bar:
                    continue
            else:
                value = total * probability
                if value <= bar:
                    break
            child = children.get(key + symbol)
            if child is None or child not in members:
                extended.append((value, prefix, symbol))
    return extended
