"""Statistics of errors: alignments, confusions, groups, and bootstrap intervals of rates and of their differences.

All functions are pure. What is drawn anew in a bootstrap is lines, since errors within a line go together. Lines of one
page or device go together too, which nothing here knows: on such sets the true uncertainty is greater.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from glyphline.models.error_rate import EditCounts

RESAMPLES = 1000

Interval = tuple[float, float]
Pair = tuple[str, str]
"""A true character and what it was read as; empty where one of them is not there."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Error rates of a set of lines, or intervals of them.

    Attributes:
        cer: Character error rate.
        wer: Word error rate.
        exact: Share of lines without any error.
    """

    cer: float
    wer: float
    exact: float


@dataclass(frozen=True, slots=True)
class Intervals:
    """An interval of each rate; see `Rates`."""

    cer: Interval
    wer: Interval
    exact: Interval


def align(truth: str, read: str) -> list[Pair]:
    """Lays a reading beside the truth, in an alignment with the fewest edits.

    Args:
        truth: The true text.
        read: What was read.

    Returns:
        Pairs in order: equal characters, substitutions, `(character, "")` for a missed and `("", character)` for an
        inserted one. Their first halves spell the truth and their second halves the reading, both in form C.
    """
    truth, read = unicodedata.normalize("NFC", truth), unicodedata.normalize("NFC", read)
    pairs: list[Pair] = []
    for block in Levenshtein.opcodes(truth, read):
        expected, found = truth[block.src_start : block.src_end], read[block.dest_start : block.dest_end]
        if block.tag == "delete":
            pairs += [(character, "") for character in expected]
        elif block.tag == "insert":
            pairs += [("", character) for character in found]
        else:
            pairs += zip(expected, found, strict=True)
    return pairs


def count_confusions(texts: Iterable[tuple[str, str]]) -> Counter[Pair]:
    """Counts what each character was read as, right readings included.

    Args:
        texts: Truth and reading of each line.

    Returns:
        How often each pair of `align` occurs.
    """
    return Counter(pair for truth, read in texts for pair in align(truth, read))


def _columns(lines: Sequence[EditCounts]) -> NDArray[np.float64]:
    """What rates are made of: (lines, 6)."""
    return np.array(
        [
            (line.edits, line.reference_characters, line.word_edits, line.reference_words, line.exact, 1)
            for line in lines
        ],
        dtype=np.float64,
    ).reshape(-1, 6)


def _rates(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turns sums of columns (…, 6) into CER, WER and exact share (…, 3)."""
    return sums[..., 0::2] / np.maximum(sums[..., 1::2], 1)


def rates_of(lines: Sequence[EditCounts]) -> Rates:
    """Computes the rates of lines; 0 where there are none."""
    return Rates(*map(float, _rates(_columns(lines).sum(axis=0))))


def _resample(columns: NDArray[np.float64], seed: int, resamples: int) -> NDArray[np.float64]:
    """Sums the columns of lines drawn with replacement: (resamples, columns)."""
    generator = np.random.default_rng(seed)
    count = len(columns)
    sums = np.empty((resamples, columns.shape[1]))
    for row in range(resamples):
        drawn = np.bincount(generator.integers(count, size=count), minlength=count)
        sums[row] = drawn @ columns
    return sums


def _quantiles(values: NDArray[np.float64], level: float) -> Intervals:
    bounds = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Intervals(*((float(low), float(high)) for low, high in bounds.T))


def bootstrap_rates(
    lines: Sequence[EditCounts], *, seed: int = 0, level: float = 0.95, resamples: int = RESAMPLES
) -> Intervals:
    """Percentile bootstrap of all rates at once, over the same drawn lines.

    Args:
        lines: Counts of each line.
        seed: Makes the result repeatable.
        level: Confidence level.
        resamples: How many sets of lines are drawn.

    Returns:
        The intervals; that of the character error rate is `glyphline.models.error_rate.bootstrap_interval`'s.

    Raises:
        ValueError: If there are no lines.
    """
    if not lines:
        raise ValueError("an interval needs at least one line")
    return _quantiles(_rates(_resample(_columns(lines), seed, resamples)), level)


@dataclass(frozen=True, slots=True)
class Difference:
    """How a second model's readings of the same lines differ from a first's.

    Attributes:
        rates: Rates of the second less those of the first.
        intervals: Paired bootstrap intervals of these differences.
        only_first: Lines that only the first read right.
        only_second: Lines that only the second read right.
        probability: Chance of so uneven a split of these lines between two models that are equally often right: the
            exact test of McNemar, two-sided.
    """

    rates: Rates
    intervals: Intervals
    only_first: int
    only_second: int
    probability: float


def compare_lines(
    first: Sequence[EditCounts],
    second: Sequence[EditCounts],
    *,
    seed: int = 0,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Difference:
    """Compares two models on the same lines, by a bootstrap that draws the same lines for both.

    A line that is hard for one model is hard for the other as well, so the interval of the difference is narrower than
    those of the two rates let expect.

    Args:
        first: Counts of each line by the first model.
        second: Counts of the same lines, in the same order, by the second.
        seed: Makes the result repeatable.
        level: Confidence level.
        resamples: How many sets of lines are drawn.

    Raises:
        ValueError: If there are no lines, or not equally many.
    """
    if not first or len(first) != len(second):
        raise ValueError("a comparison needs the same lines, at least one, of both models")
    left, right = _columns(first), _columns(second)
    sums = _resample(np.hstack([left, right]), seed, resamples)
    difference = _rates(right.sum(axis=0)) - _rates(left.sum(axis=0))
    only_first = sum(a.exact and not b.exact for a, b in zip(first, second, strict=True))
    only_second = sum(b.exact and not a.exact for a, b in zip(first, second, strict=True))
    return Difference(
        rates=Rates(*map(float, difference)),
        intervals=_quantiles(_rates(sums[:, 6:]) - _rates(sums[:, :6]), level),
        only_first=only_first,
        only_second=only_second,
        probability=sign_test(only_first, only_second),
    )


def sign_test(first: int, second: int) -> float:
    """Returns how likely a fair coin is to fall at least as unevenly as `first` to `second`, either way."""
    tosses, fewer = first + second, min(first, second)
    # Whole numbers to the end: half to the power of a thousand tosses is no float.
    ways = sum(math.comb(tosses, heads) for heads in range(fewer + 1))
    return min(1.0, float(Fraction(2 * ways, 2**tosses)))


@dataclass(frozen=True, slots=True)
class Span:
    """A range of values that lines are grouped by, both ends included.

    Attributes:
        label: What a report calls it.
        members: Indices of the lines, at least one.
    """

    label: str
    members: tuple[int, ...]


def group_lengths(lengths: Sequence[int], most: int = 32) -> list[Span]:
    """Groups lines by length: each length by itself, or ranges of lengths where there are too many.

    Args:
        lengths: Characters of each line (lines).
        most: Greatest number of groups.
    """
    distinct = len(set(lengths))
    step = 1 if distinct <= most else -(-(max(lengths) + 1) // most)
    groups: dict[int, list[int]] = {}
    for index, length in enumerate(lengths):
        groups.setdefault(length // step, []).append(index)
    return [
        Span(str(key) if step == 1 else f"{key * step}–{key * step + step - 1}", tuple(members))
        for key, members in sorted(groups.items())
    ]


def group_quantiles(values: Sequence[float], groups: int = 8) -> list[Span]:
    """Groups lines by a measure into ranges that hold about equally many.

    Args:
        values: The measure of each line (lines).
        groups: Greatest number of groups; there are fewer where values are equal.
    """
    if not len(values):
        return []
    array = np.asarray(values, dtype=np.float64)
    edges = np.unique(np.quantile(array, np.linspace(0, 1, groups + 1)))
    keys = np.searchsorted(edges[1:-1], array, side="left")
    spans = []
    for key in range(max(1, len(edges) - 1)):
        members = np.flatnonzero(keys == key)
        if members.size:
            low, high = f"{array[members].min():.1f}", f"{array[members].max():.1f}"
            spans.append(Span(low if low == high else f"{low}–{high}", tuple(map(int, members))))
    return spans
