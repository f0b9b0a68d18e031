"""Decoding of a CTC head: the best path for greedy search, prefix beam search, exact scores for both.

Whatever search found a text, its score is its log-probability summed over all paths, so that scores can be compared.
The greedy text is always among the beam's candidates: the beam's best score is never below greedy's.

A network that reads in both directions may write a symbol wherever it likes, and does so late: when it has read all of
it, most often at the edge to the next. So a symbol's place is not the frame or two in which it is written but what was
read for it: from where the symbol before was written to where it is written itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glyphline.models.decoding.ctc_alignment import Text, align, score_texts
from glyphline.models.decoding.ctc_beam import Pruning, prefix_beam_search
from glyphline.models.decoding.ctc_guided import LANGUAGE_MODEL_PRUNING, LEXICON_PRUNING, guided_beam_search
from glyphline.models.decoding.distributions import FloatArray, calibrated_at, restrict
from glyphline.models.decoding.options import ResolvedOptions
from glyphline.models.decoding.readings import Hypothesis

__all__ = ["Pruning", "decode_ctc"]

_FAR_BEHIND = 1e-2  # what a guided search sums for a text falls short of all its paths by far less


def decode_ctc(
    log_probabilities: FloatArray,
    lengths: NDArray[np.int64],
    options: ResolvedOptions,
    *,
    temperature: float = 1.0,
    pruning: Pruning | None = None,
) -> list[list[Hypothesis]]:
    """Turns the outputs of a CTC network into texts.

    Args:
        log_probabilities: (images, frames, symbols), class 0 is the blank.
        lengths: Valid frames of each image (images); what lies beyond is never looked at.
        options: Search, restrictions and limits.
        temperature: Calibrates confidences. It has no part in the search.
        pruning: What the beam search may leave out; None is what has proved to lose nothing.

    Returns:
        For each image its hypotheses, best first: at least one, at most `options.max_alternatives`, all different.
        Where a lexicon holds no word that has room in the frames, the one hypothesis is the empty text, of which the
        network is made out to be not sure at all.
    """
    log_probabilities = restrict(log_probabilities, options.allowed)
    paths = _best_paths(log_probabilities, lengths, temperature)
    if options.beam_width == 1 and options.guide is None:
        return _greedy(log_probabilities, lengths, paths, options.max_output_length)
    return _beam(log_probabilities, lengths, paths, options, temperature=temperature, pruning=pruning)


@dataclass(frozen=True, slots=True)
class _Path:
    """One way to lay a text over the frames.

    Attributes:
        text: Network classes.
        symbol_log_probabilities: Calibrated, of each symbol where it is likeliest.
        spans: First and last frame edge of what was read for each symbol.
        closing_log_probability: Mean calibrated log-probability of the blank if there is no symbol, None otherwise.
    """

    text: Text
    symbol_log_probabilities: tuple[float, ...]
    spans: tuple[tuple[float, float], ...]
    closing_log_probability: float | None

    def hypothesis(self, score: float, log_probability: float, longest: int, share: float | None = None) -> Hypothesis:
        """Completes the path by its score, log-probability and share, and cuts it after `longest` symbols."""
        return Hypothesis(
            symbols=self.text[:longest],
            score=score,
            log_probability=log_probability,
            symbol_log_probabilities=self.symbol_log_probabilities[:longest],
            closing_log_probability=self.closing_log_probability,
            spans=self.spans[:longest],
            truncated=len(self.text) > longest,
            share=share,
        )


def _greedy(
    log_probabilities: FloatArray, lengths: NDArray[np.int64], paths: list[_Path], longest: int
) -> list[list[Hypothesis]]:
    texts = [path.text for path in paths]
    scores = score_texts(log_probabilities, lengths, range(len(texts)), texts).tolist()
    return [[path.hypothesis(score, score, longest)] for path, score in zip(paths, scores, strict=True)]


def _beam(
    log_probabilities: FloatArray,
    lengths: NDArray[np.int64],
    paths: list[_Path],
    options: ResolvedOptions,
    *,
    temperature: float,
    pruning: Pruning | None,
) -> list[list[Hypothesis]]:
    """Searches each image, then scores what was found exactly: the search itself sums over unpruned paths only."""
    limits = options.max_alternatives, options.max_output_length
    rows: list[int] = []
    texts: list[Text] = []
    added: list[float] = []  # by the guide
    shares: list[float | None] = []
    for row, (path, length) in enumerate(zip(paths, lengths.tolist(), strict=True)):
        candidates = _candidates(log_probabilities[row, :length], path.text, options, pruning)
        rows += [row] * len(candidates)
        texts += candidates
        added += [candidate.added for candidate in candidates.values()]
        shares += [candidate.share for candidate in candidates.values()]
    chances = score_texts(log_probabilities, lengths, rows, texts).tolist()
    scored: list[dict[Text, tuple[float, float, float | None]]] = [{} for _ in paths]  # score, log-probability, share
    for row, text, chance, extra, share in zip(rows, texts, chances, added, shares, strict=True):
        if options.guide is None or chance + extra > -np.inf:
            scored[row][text] = chance + extra, chance, share

    kept = [_distinct(sorted(known, key=known.__getitem__, reverse=True), *limits) for known in scored]
    others = [(row, text) for row, chosen in enumerate(kept) for text in chosen if text != paths[row].text]
    aligned = dict(zip(others, _align(log_probabilities, lengths, others, temperature), strict=True))
    found: list[list[Hypothesis]] = []
    for row, (path, chosen) in enumerate(zip(paths, kept, strict=True)):
        found.append([])
        for text in chosen:
            score, chance, share = scored[row][text]
            traced = aligned.get((row, text), path)
            found[-1].append(traced.hypothesis(score, chance, options.max_output_length, share))
    for row, hypotheses in enumerate(found):
        if not hypotheses:
            (chance,) = score_texts(log_probabilities, lengths, [row], [()]).tolist()
            hypotheses.append(_Path((), (), (), -np.inf).hypothesis(chance, chance, options.max_output_length))
    return found


@dataclass(frozen=True, slots=True)
class _Candidate:
    """What is known of a text before it is scored exactly.

    Attributes:
        added: What the guide adds to its score.
        share: Its part of what the search summed for all texts that it held; None under a lexicon, which lets only
            few texts be: the only one that is allowed may have all of it and yet be far from what the image shows.
    """

    added: float
    share: float | None


def _candidates(
    log_probabilities: FloatArray, greedy: Text, options: ResolvedOptions, pruning: Pruning | None
) -> dict[Text, _Candidate]:
    """Finds the texts of an image that may be its best.

    Args:
        log_probabilities: (frames, symbols).
        greedy: What the best path says; it is among them unless a lexicon lacks it.
        options: Search and guide.
        pruning: What the search may leave out.
    """
    limits, guide = (options.max_alternatives, options.max_output_length), options.guide
    if guide is None:
        found = prefix_beam_search(log_probabilities, options.beam_width, pruning or Pruning())
        chosen = _distinct(list(found), *limits)
    else:
        pruning = pruning or (LEXICON_PRUNING if guide.closed else LANGUAGE_MODEL_PRUNING)
        found = guided_beam_search(log_probabilities, options.beam_width, pruning, guide)
        best = max(found.values()) * _FAR_BEHIND
        chosen = [text for place, (text, value) in enumerate(found.items()) if place < limits[0] or value >= best]
    total = sum(found.values())
    candidates = {}
    for text in dict.fromkeys([*chosen, greedy]):
        added = 0.0 if guide is None else guide.empty if not greedy and text == greedy else guide.score(text)
        if added > -np.inf:
            known = guide is None or not guide.closed
            candidates[text] = _Candidate(added, found.get(text, 0.0) / total if known else None)
    return candidates


def _distinct(texts: Sequence[Text], most: int, longest: int) -> list[Text]:
    """Keeps the first texts that still differ once cut after `longest` symbols."""
    if most == 1:
        return list(texts[:1])
    kept: dict[Text, Text] = {}
    for text in texts:
        kept.setdefault(text[:longest], text)
        if len(kept) == most:
            break
    return list(kept.values())


def _best_paths(log_probabilities: FloatArray, lengths: NDArray[np.int64], temperature: float) -> list[_Path]:
    """Takes each frame's likeliest symbol, merges repeats and drops blanks; all images at once."""
    symbols = log_probabilities.argmax(axis=2)
    symbols[np.arange(symbols.shape[1]) >= lengths[:, None]] = 0
    return _trace(log_probabilities, lengths, symbols, symbols, temperature=temperature)


def _align(
    log_probabilities: FloatArray, lengths: NDArray[np.int64], others: list[tuple[int, Text]], temperature: float
) -> list[_Path]:
    """Lays texts that are no image's best path over the frames of their images."""
    if not others:
        return []
    rows, texts = [row for row, _ in others], [text for _, text in others]
    states = align(log_probabilities, lengths, rows, texts)
    of_states = np.zeros((len(texts), int(states.max(initial=0)) + 2), dtype=np.intp)
    for position, text in enumerate(texts):
        of_states[position, 1 : 2 * len(text) : 2] = text
    symbols = np.take_along_axis(of_states, states, axis=1)
    return _trace(log_probabilities[rows], lengths[rows], states, symbols, temperature=temperature)


def _trace(
    log_probabilities: FloatArray,
    lengths: NDArray[np.int64],
    states: NDArray[np.int64],
    symbols: NDArray[np.int64],
    *,
    temperature: float,
) -> list[_Path]:
    """Finds the symbols that paths write, where, and how likely each is.

    Args:
        log_probabilities: (paths, frames, symbols).
        lengths: Valid frames (paths).
        states: Frames with the same state in a row write one symbol (paths, frames).
        symbols: What they write, 0 for nothing (paths, frames); 0 beyond the valid frames.
        temperature: Calibrates the probabilities.

    Returns:
        One path each.
    """
    paths, frames, size = log_probabilities.shape
    if not frames:
        return [_Path((), (), (), 0.0)] * paths
    written = symbols.ravel()
    chances = calibrated_at(log_probabilities.reshape(-1, size), written, temperature)
    changes = np.ones((paths, frames), dtype=bool)
    np.not_equal(states[:, 1:], states[:, :-1], out=changes[:, 1:])
    starts = changes.ravel().nonzero()[0]
    stops = np.append(starts[1:], paths * frames)
    peaks = np.maximum.reduceat(chances, starts)
    kept = written[starts] != 0
    starts, stops, peaks = starts[kept], stops[kept], peaks[kept]

    rows = starts // frames
    texts, values = written[starts].tolist(), peaks.tolist()
    edges = np.searchsorted(rows, np.arange(paths + 1))
    lefts = _first_edges(starts, stops, edges, frames)
    spans = list(zip((lefts - rows * frames).tolist(), (stops - rows * frames).astype(float).tolist(), strict=True))
    traced = []
    for row, length in enumerate(lengths.tolist()):
        part = slice(int(edges[row]), int(edges[row + 1]))
        closing = None
        if part.start == part.stop:
            closing = float(chances[row * frames : row * frames + length].mean()) if length else 0.0
        traced.append(_Path(tuple(texts[part]), tuple(values[part]), tuple(spans[part]), closing))
    return traced


def _first_edges(
    starts: NDArray[np.int64], stops: NDArray[np.int64], edges: NDArray[np.int64], frames: int
) -> FloatArray:
    """Finds where what was read for each symbol begins.

    That is where the symbol before was written. Before the first symbol may lie a wide margin: it is given as much as
    the others have on average, but never less than the frames it is written in; a lone symbol has all that was read.

    Args:
        starts: Where each symbol's writing begins, all paths one after another, in frames from the first path's first
            (symbols).
        stops: Where it ends (symbols).
        edges: Which symbols are a path's: from its edge to the next path's (paths + 1).
        frames: Frames of each path.

    Returns:
        (symbols), in the frames of `starts`.
    """
    lefts: FloatArray = np.roll(stops, 1).astype(np.float64)
    paths = np.diff(edges).nonzero()[0]
    first, last = edges[paths], edges[paths + 1] - 1
    alone = first == last
    stretch = (stops[last] - stops[first]) / np.where(alone, 1, last - first)
    begin = paths * frames
    lefts[first] = np.where(alone, begin, np.maximum(begin, np.minimum(starts[first], stops[first] - stretch)))
    return lefts
