"""The texts that a reading may be, where they are known beforehand: a list of words, and its trie for an alphabet."""

import hashlib
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from glyphline.models.alphabet import Alphabet
from glyphline.models.decoding.trie import Trie, build_trie
from glyphline.models.errors import AlphabetError, OptionsError

__all__ = ["BoundLexicon", "Lexicon"]

_FIELD = "lexicon"
_SHOWN = 10  # characters that a message names


class Lexicon:
    """A list of words, in Unicode normal form C, each once.

    It never changes. Two of the same words are equal; what it is bound to an alphabet as is worked out once. A word is
    whatever a reading may be: `Main Street 12` is one too, where the whole reading has to be an entry.
    """

    __slots__ = ("_bound", "_digest", "_lock", "_parts", "words")

    def __init__(self, words: Iterable[str]) -> None:
        """Takes over the words.

        Args:
            words: In any order. White space around them does not count, nor do empty ones and repetitions.

        Raises:
            OptionsError: If there is none.
        """
        # Joined and split again: half a million words are normalised in one call instead of as many.
        normalised = Alphabet.normalise_text("\n".join(map(_clean, words))).split("\n")
        self.words: tuple[str, ...] = tuple(sorted({word for word in normalised if word}))
        if not self.words:
            raise OptionsError(_FIELD, "holds no word")
        self._digest = hashlib.sha256("\n".join(self.words).encode("utf-8", "surrogatepass")).digest()
        self._bound: dict[Alphabet, BoundLexicon] = {}
        self._parts: Lexicon | None = None
        self._lock = threading.Lock()

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Reads a file of one word a line.

        Args:
            path: A text file in UTF-8. Empty lines and white space around words do not count.

        Raises:
            OptionsError: If it cannot be read, is no UTF-8, or holds no word. The message names the file.
        """
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except OSError as error:
            raise OptionsError(_FIELD, f"{path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise OptionsError(_FIELD, f"{path}: not a text file in UTF-8: {error.reason}") from error
        try:
            return cls(text.split("\n"))
        except OptionsError as error:
            raise OptionsError(_FIELD, f"{path}: {error.message}") from error

    def fits(self, alphabet: Alphabet) -> bool:
        """Whether at least one word can be written in an alphabet; much quicker than `bind`."""
        return any(not alphabet.unknown_characters(word) for word in self.words)

    def bind(self, alphabet: Alphabet) -> "BoundLexicon":
        """Spells the words in the symbols of an alphabet.

        Args:
            alphabet: A model's.

        Returns:
            The trie, and what could not be spelt.

        Raises:
            OptionsError: If no word can be spelt; it names the characters that the alphabet lacks.
        """
        with self._lock:
            bound = self._bound.get(alphabet)
            if bound is None:
                bound = self._bound[alphabet] = _bind(self.words, alphabet)
        return bound

    def parts(self) -> "Lexicon":
        """Returns the lexicon of the words that its entries are made of, split at spaces."""
        with self._lock:
            if self._parts is None:
                spaced = any(" " in word for word in self.words)
                self._parts = Lexicon(part for word in self.words for part in word.split(" ")) if spaced else self
            return self._parts

    def __len__(self) -> int:
        return len(self.words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lexicon) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.words,)

    def __repr__(self) -> str:
        return f"Lexicon({len(self)} words, {self.words[0]!r} … {self.words[-1]!r})"


@dataclass(frozen=True, slots=True, eq=False)
class BoundLexicon:
    """A lexicon in the symbols of an alphabet.

    Attributes:
        trie: Of network classes.
        left_out: Words that the alphabet cannot write.
        unknown: The characters it lacks for them, with the number of words each occurs in.
    """

    trie: Trie
    left_out: int
    unknown: dict[str, int]

    def warning(self) -> str | None:
        """Says which words were left out and why, None if none were."""
        if not self.left_out:
            return None
        return f"{self.left_out} words left out: the model's alphabet lacks {_name(self.unknown)}"


def _clean(word: str) -> str:
    return " ".join(word.splitlines()).strip() if "\n" in word else word.strip()


def _name(unknown: dict[str, int]) -> str:
    """Names characters, the most frequent first."""
    ranked = sorted(unknown, key=lambda character: (-unknown[character], character))
    more = f" and {len(ranked) - _SHOWN} more" if len(ranked) > _SHOWN else ""
    return ", ".join(f"{character!r}" for character in ranked[:_SHOWN]) + more


def _bind(words: tuple[str, ...], alphabet: Alphabet) -> BoundLexicon:
    if all(len(symbol) == 1 for symbol in alphabet.symbols):
        symbols, lengths, unknown = _spell_characters(words, alphabet)
    else:
        symbols, lengths, unknown = _spell_symbols(words, alphabet)
    if not len(lengths):
        raise OptionsError(_FIELD, f"no word can be written: the model's alphabet lacks {_name(unknown)}")
    return BoundLexicon(build_trie(symbols, lengths, alphabet.size), len(words) - len(lengths), unknown)


def _spell_characters(
    words: tuple[str, ...], alphabet: Alphabet
) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[str, int]]:
    """Spells all words at once, where every symbol is one character.

    Returns:
        The classes of the words that can be spelt, one after another, their lengths, and in how many words each
        unknown character occurs.
    """
    points = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    classes_of = np.zeros(int(points.max()) + 1, dtype=np.int64)
    for number, symbol in enumerate(alphabet.symbols):
        if ord(symbol) < len(classes_of):
            classes_of[ord(symbol)] = number + 1
    classes = classes_of[points]
    lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
    owners = np.repeat(np.arange(len(words)), lengths)
    lacking = classes == 0
    spelt = np.ones(len(words), dtype=bool)
    spelt[owners[lacking]] = False
    pairs = np.unique(np.stack((owners[lacking], points[lacking].astype(np.int64))), axis=1)
    found, counts = np.unique(pairs[1], return_counts=True)
    unknown = {chr(point): count for point, count in zip(found.tolist(), counts.tolist(), strict=True)}
    return classes[spelt[owners]], lengths[spelt], unknown


def _spell_symbols(
    words: tuple[str, ...], alphabet: Alphabet
) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[str, int]]:
    """The same for any alphabet: a word is spelt as a label is, with the longest symbol that fits at each place."""
    spelt: list[list[int]] = []
    unknown: Counter[str] = Counter()
    for word in words:
        try:
            spelt.append(alphabet.encode(word))
        except AlphabetError:
            unknown.update(alphabet.unknown_characters(word))
    flat = np.array([value for classes in spelt for value in classes], dtype=np.int64)
    return flat, np.array([len(classes) for classes in spelt], dtype=np.int64), dict(unknown)
