"""How far predictions are from the truth: character and word error rates, exact matches, and how sure those are.

The rules, since tools differ in them:

- A character is a Unicode code point after normalisation to form C, of truth and prediction alike. Words are what
  white space separates.
- Rates are micro-averages, all edits over all reference characters, so that a long line weighs more than a short one.
  They exceed 1 where much is inserted.
- An empty prediction of an empty line is right: 0 edits of 0. Where all the truth together is empty, the rate is the
  number of edits, that is, the denominator is at least 1.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
from rapidfuzz.distance import Levenshtein

__all__ = ["EditCounts", "ErrorRate", "bootstrap_interval", "edit_counts", "evaluate_pairs", "wilson_interval"]


@dataclass(frozen=True, slots=True)
class EditCounts:
    """The edits that turn one line's truth into its prediction.

    Attributes:
        insertions: Characters predicted that the truth lacks.
        deletions: Characters of the truth that the prediction lacks.
        substitutions: Characters predicted as another.
        reference_characters: Length of the truth.
        exact: Whether the prediction is the truth.
        word_edits: Insertions, deletions and substitutions of whole words.
        reference_words: Words of the truth.
    """

    insertions: int
    deletions: int
    substitutions: int
    reference_characters: int
    exact: bool
    word_edits: int
    reference_words: int

    @property
    def edits(self) -> int:
        """Insertions, deletions and substitutions together."""
        return self.insertions + self.deletions + self.substitutions


@dataclass(slots=True)
class ErrorRate:
    """Accumulates the edits of many lines.

    Attributes:
        lines: What was counted, line by line.
    """

    lines: list[EditCounts] = field(default_factory=list)

    def add(self, counts: EditCounts) -> None:
        """Counts one more line."""
        self.lines.append(counts)

    @property
    def n(self) -> int:
        """Number of lines."""
        return len(self.lines)

    @property
    def insertions(self) -> int:
        """Characters inserted in all lines."""
        return sum(line.insertions for line in self.lines)

    @property
    def deletions(self) -> int:
        """Characters deleted in all lines."""
        return sum(line.deletions for line in self.lines)

    @property
    def substitutions(self) -> int:
        """Characters substituted in all lines."""
        return sum(line.substitutions for line in self.lines)

    @property
    def edits(self) -> int:
        """Numerator of the character error rate."""
        return sum(line.edits for line in self.lines)

    @property
    def reference_characters(self) -> int:
        """Denominator of the character error rate."""
        return sum(line.reference_characters for line in self.lines)

    @property
    def cer(self) -> float:
        """Character error rate; 0.0 before any line is counted."""
        return self.edits / max(self.reference_characters, 1)

    @property
    def wer(self) -> float:
        """Word error rate; 0.0 before any line is counted."""
        return sum(line.word_edits for line in self.lines) / max(sum(line.reference_words for line in self.lines), 1)

    @property
    def exact_lines(self) -> int:
        """Number of lines that were predicted without any error."""
        return sum(line.exact for line in self.lines)

    @property
    def exact(self) -> float:
        """Share of lines that were predicted without any error; 0.0 before any line is counted."""
        return self.exact_lines / max(self.n, 1)

    def cer_interval(self, *, seed: int = 0, level: float = 0.95) -> tuple[float, float]:
        """Bootstrap interval of the character error rate; see `bootstrap_interval`."""
        return bootstrap_interval(self.lines, seed=seed, level=level)

    def exact_interval(self, *, level: float = 0.95) -> tuple[float, float]:
        """Wilson interval of the share of exact lines; see `wilson_interval`."""
        return wilson_interval(self.exact_lines, self.n, level=level)


def edit_counts(reference: str, prediction: str) -> EditCounts:
    """Counts the edits of one line, in the alignment with the fewest.

    Args:
        reference: The truth.
        prediction: What was read.

    Returns:
        The counts, of characters and of words.
    """
    reference = unicodedata.normalize("NFC", reference)
    prediction = unicodedata.normalize("NFC", prediction)
    kinds = [operation.tag for operation in Levenshtein.editops(reference, prediction)]
    words = reference.split()
    return EditCounts(
        insertions=kinds.count("insert"),
        deletions=kinds.count("delete"),
        substitutions=kinds.count("replace"),
        reference_characters=len(reference),
        exact=not kinds,
        word_edits=Levenshtein.distance(words, prediction.split()),
        reference_words=len(words),
    )


def evaluate_pairs(pairs: Iterable[tuple[str, str]]) -> ErrorRate:
    """Counts the edits of many lines.

    Args:
        pairs: Truth and prediction of each line.

    Returns:
        The error rate over all of them.
    """
    return ErrorRate([edit_counts(reference, prediction) for reference, prediction in pairs])


def bootstrap_interval(
    lines: Sequence[EditCounts], *, seed: int = 0, level: float = 0.95, resamples: int = 1000
) -> tuple[float, float]:
    """Percentile bootstrap of the character error rate, drawing lines, since errors within a line go together.

    Args:
        lines: Counts of each line.
        seed: Makes the result repeatable.
        level: Confidence level.
        resamples: How many sets of lines are drawn.

    Returns:
        Lower and upper bound.

    Raises:
        ValueError: If there are no lines.
    """
    if not lines:
        raise ValueError("an interval needs at least one line")
    edits = np.array([line.edits for line in lines], dtype=np.int64)
    characters = np.array([line.reference_characters for line in lines], dtype=np.int64)
    generator = np.random.default_rng(seed)
    rates = np.empty(resamples)
    for resample in range(resamples):
        drawn = generator.integers(len(lines), size=len(lines))
        rates[resample] = edits[drawn].sum() / max(characters[drawn].sum(), 1)
    lower, upper = np.quantile(rates, [(1 - level) / 2, (1 + level) / 2])
    return float(lower), float(upper)


def wilson_interval(successes: int, trials: int, *, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion: honest near 0 and 1, where the usual one has no width.

    Args:
        successes: How often it held.
        trials: How often it was tried; with none, nothing is known and the interval is everything.
        level: Confidence level.

    Returns:
        Lower and upper bound, within 0 to 1.
    """
    if trials == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / trials
    scale = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    spread = z * (share * (1 - share) / trials + z * z / (4 * trials * trials)) ** 0.5 / scale
    # At 0 of n and n of n the bounds are 0 and 1 exactly, where rounding would miss them by a hair.
    lower = 0.0 if successes == 0 else max(0.0, centre - spread)
    upper = 1.0 if successes == trials else min(1.0, centre + spread)
    return lower, upper
