"""Makes a character language model of texts: counts n-grams, smooths them, and writes an ARPA file.

The smoothing is Witten and Bell's (1991), interpolated. After a context h with T different characters in n occurrences,

    p(c | h) = (count(hc) + T · p(c | h′)) / (n + T)

where h′ is h without its first character, and the shortest context backs off to all characters alike. The more
different characters a context has seen, the more it leaves to those it has not. Unlike Kneser and Ney's it has nothing
to estimate from counts of counts, which an alphabet, of which every character is frequent, has none of.

Every text is taken with its beginning `<s>` and end `</s>`. What is written reads as it was computed: the back-off form
of an interpolated model is exact.
"""

import gzip
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from glyphline.models.alphabet import Alphabet
from glyphline.models.decoding.arpa import BEGIN, END, MAX_ORDER, SPACE, UNKNOWN
from glyphline.models.errors import OptionsError

__all__ = ["CharacterNGrams", "bits_per_character", "count_and_smooth", "write_arpa"]

_SPECIAL = (BEGIN, END, UNKNOWN)
_NEVER = -99.0  # log10 of what is never asked for: that a text begins in its midst


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """The n-grams of one length.

    Attributes:
        parents: Of each, the n-gram without its last character, in the level before (n-grams).
        tokens: Of each, the last character (n-grams).
        values: log10 probability (n-grams).
        backoffs: log10 of the back-off weight (n-grams).
    """

    parents: NDArray[np.int64]
    tokens: NDArray[np.int64]
    values: NDArray[np.float64]
    backoffs: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class CharacterNGrams:
    """A smoothed model, ready to be written.

    Attributes:
        tokens: What each token number stands for, as ARPA files spell it.
        levels: The n-grams of length 1, 2, …
        texts: How many texts were counted.
    """

    tokens: tuple[str, ...]
    levels: tuple[_Level, ...]
    texts: int

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of n-grams of each length."""
        return tuple(len(level.tokens) for level in self.levels)


def count_and_smooth(texts: Iterable[str], order: int = 6, minimum_count: int = 1) -> CharacterNGrams:
    """Makes a model of texts.

    Args:
        texts: Words or lines, brought to Unicode normal form C. White space around them and empty ones do not count;
            white space within is a space. A text that occurs twice counts twice.
        order: Length of the longest n-grams: a character is foretold from the `order − 1` before it.
        minimum_count: N-grams of three or more characters are kept if they occur this often. More than 1 makes the
            model smaller, and a little worse.

    Raises:
        OptionsError: If there is no text, or a number is out of its range.
    """
    if not 1 <= order <= MAX_ORDER:
        raise OptionsError("order", f"must be from 1 to {MAX_ORDER}, not {order}")
    if minimum_count < 1:
        raise OptionsError("minimum_count", f"must be at least 1, not {minimum_count}")
    lines = [line for line in (" ".join(text.split()) for text in texts) if line]
    if not lines:
        raise OptionsError("texts", "hold no text")
    # A line end stands for the end of a text; the beginning is put before each text below.
    points = np.frombuffer((Alphabet.normalise_text("\n".join(lines)) + "\n").encode("utf-32-le"), dtype=np.uint32)
    characters = np.unique(points[points != ord("\n")])
    numbers = np.zeros(int(points.max()) + 1, dtype=np.int64)
    numbers[characters] = np.arange(len(characters)) + len(_SPECIAL)
    numbers[ord("\n")] = _SPECIAL.index(END)
    stream = numbers[points]
    starts = np.concatenate(([0], np.flatnonzero(stream == _SPECIAL.index(END))[:-1] + 1))
    stream = np.insert(stream, starts, _SPECIAL.index(BEGIN))
    names = (SPACE if point == ord(" ") else chr(point) for point in characters.tolist())
    tokens = (*_SPECIAL, *names)
    return CharacterNGrams(tokens, tuple(_levels(stream, len(tokens), order, minimum_count)), len(lines))


def _levels(stream: NDArray[np.int64], size: int, order: int, minimum_count: int) -> list[_Level]:
    """Counts and smooths, one length after another.

    Args:
        stream: Tokens of all texts, each with its beginning and end (tokens).
        size: Number of tokens.
        order: Length of the longest n-grams.
        minimum_count: Of n-grams that are kept.
    """
    begin, end = _SPECIAL.index(BEGIN), _SPECIAL.index(END)
    counts = np.bincount(stream, minlength=size)
    seen = np.flatnonzero((counts > 0) & (np.arange(size) != begin))
    total, kinds = int(counts[seen].sum()), len(seen)
    probabilities = (counts + kinds / (size - 1)) / (total + kinds)  # <unk> among them, <s> not
    values = np.log10(probabilities)
    values[begin] = _NEVER
    levels = [_Level(np.zeros(size, dtype=np.int64), np.arange(size), values, np.zeros(size))]

    nodes = stream  # of the n-gram that begins at each place of the stream (tokens), −1 for none
    for length in range(2, order + 1):
        last = len(stream) - length + 1  # places at which an n-gram of this length could begin
        shorter = nodes
        # The end of a text is the last of an n-gram, or an n-gram would go over into the next text.
        possible = np.flatnonzero((shorter[:last] >= 0) & (stream[length - 2 : -1] != end))
        if not len(possible):
            break
        keys, first, inverse, occurrences = np.unique(
            shorter[possible] * size + stream[possible + length - 1],
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        kept = occurrences >= (minimum_count if length > 2 else 1)
        if not kept.any():
            break
        numbers = np.where(kept, np.cumsum(kept) - 1, -1)
        nodes = np.full(len(stream), -1, dtype=np.int64)
        nodes[possible] = numbers[inverse]
        parents, tokens = keys[kept] // size, keys[kept] % size
        suffixes = shorter[possible[first[kept]] + 1]
        backed = probabilities[suffixes]

        contexts = len(levels[-1].tokens)
        kinds_after = np.bincount(parents, minlength=contexts)
        seen_after = np.bincount(parents, weights=occurrences[kept], minlength=contexts)
        weight = kinds_after / np.maximum(seen_after + kinds_after, 1)
        probabilities = occurrences[kept] / (seen_after + kinds_after)[parents] + weight[parents] * backed
        backoffs = np.zeros(contexts)
        backoffs[kinds_after > 0] = np.log10(weight[kinds_after > 0])
        before = levels[-1]
        levels[-1] = _Level(before.parents, before.tokens, before.values, backoffs)
        levels.append(_Level(parents, tokens, np.log10(probabilities), np.zeros(len(tokens))))
    return levels


def write_arpa(ngrams: CharacterNGrams, path: Path, decimals: int | None = None) -> None:
    """Writes a model as an ARPA file, in UTF-8 and packed by gzip if the name ends in `.gz`.

    Args:
        ngrams: The model.
        path: The file.
        decimals: Of each logarithm; None writes seven digits.

    Raises:
        OSError: If it cannot be written.
    """
    partial = path.with_name(f"{path.name}.partial")
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(partial, "wt", encoding="utf-8", newline="\n") as file:
        _write(ngrams, file, ".7g" if decimals is None else f".{decimals}f")
    partial.replace(path)


def _write(ngrams: CharacterNGrams, file: TextIO, form: str) -> None:
    file.write("\\data\\\n")
    file.writelines(f"ngram {length}={count}\n" for length, count in enumerate(ngrams.counts, 1))
    spellings: list[str] = [""]
    for length, level in enumerate(ngrams.levels, 1):
        file.write(f"\n\\{length}-grams:\n")
        separator = " " if length > 1 else ""
        spellings = [
            f"{spellings[parent]}{separator}{ngrams.tokens[token]}"
            for parent, token in zip(level.parents.tolist(), level.tokens.tolist(), strict=True)
        ]
        rows = zip(level.values.tolist(), spellings, level.backoffs.tolist(), strict=True)
        if length == len(ngrams.levels):
            file.writelines(f"{value:{form}}\t{spelling}\n" for value, spelling, _ in rows)
        else:
            file.writelines(f"{value:{form}}\t{spelling}\t{backoff:{form}}\n" for value, spelling, backoff in rows)
    file.write("\n\\end\\\n")


def bits_per_character(log_probabilities: Iterable[float], characters: int) -> float:
    """Returns how many bits a character costs under a model, the ends of texts among the characters.

    Args:
        log_probabilities: Natural, of each text.
        characters: Of all texts, with one more for each text's end.
    """
    return -math.fsum(log_probabilities) / (max(characters, 1) * math.log(2.0))
