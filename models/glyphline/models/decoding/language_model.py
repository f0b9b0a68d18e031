"""A language model of characters: how likely a text is, whatever the image shows.

It is a back-off model of n-grams as ARPA files hold it. The probability of a character after a context is that of the
longest n-gram that the file has, times the back-off weights of the longer contexts that it has without that character:

    log p(c | h) = log p(hc)                  if the file has hc
                 = b(h) + log p(c | h′)       else, where h′ is h without its first character

and b(h) = 0 if the file lacks h.

A context is a node of a trie, and each node knows the node of its longest suffix, so that the probabilities of all
characters after a context are those after its suffix, lowered by its back-off weight, with its own n-grams laid over.
"""

import hashlib
import math
import threading
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from glyphline.models.alphabet import Alphabet
from glyphline.models.decoding.arpa import BEGIN, END, FIELD, SPACE, UNKNOWN, NGrams, parse_arpa
from glyphline.models.decoding.trie import ROOT, Trie
from glyphline.models.errors import OptionsError

__all__ = ["BoundCharacterModel", "CharacterModel"]

_UNSEEN = 10.0  # how many times rarer than its rarest a character is that a file without <unk> lacks
_REMEMBERED_ROWS = 4_000  # of probabilities, each some hundred numbers; more are worked out again


class CharacterModel:
    """A character n-gram model, read from an ARPA file.

    It never changes. Two of the same file contents are equal.
    """

    __slots__ = ("_bound", "_content", "_digest", "_lock", "_ngrams")

    def __init__(self, content: bytes, name: str = "language model") -> None:
        """Reads the content of an ARPA file.

        Args:
            content: UTF-8, or that packed by gzip or xz. Every token is one character, `<space>` or `▁` the space,
                `<s>` and `</s>` the beginning and end of a text, `<unk>` any other character.
            name: What messages call it.

        Raises:
            OptionsError: If it is no such model. The message names the line.
        """
        self._content = content
        self._digest = hashlib.sha256(content).digest()
        self._ngrams = parse_arpa(content, name)
        self._bound: dict[Alphabet, BoundCharacterModel] = {}
        self._lock = threading.Lock()

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Reads an ARPA file, packed by gzip or xz or not at all.

        Raises:
            OptionsError: If it cannot be read or is no model of characters. The message names the file and the line.
        """
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise OptionsError(FIELD, f"{path}: {error.strerror}") from error
        return cls(content, str(path))

    @property
    def order(self) -> int:
        """Length of the longest n-gram."""
        return self._ngrams.order

    @property
    def characters(self) -> frozenset[str]:
        """The characters it knows."""
        return frozenset(_characters(self._ngrams.tokens))

    def __len__(self) -> int:
        """Number of n-grams."""
        return len(self._ngrams.trie) - 1

    def bind(self, alphabet: Alphabet) -> "BoundCharacterModel":
        """Makes the model speak of the symbols of an alphabet.

        Raises:
            OptionsError: If it knows none of the alphabet's characters.
        """
        with self._lock:
            bound = self._bound.get(alphabet)
            if bound is None:
                bound = self._bound[alphabet] = BoundCharacterModel(self._ngrams, alphabet)
        return bound

    def fits(self, alphabet: Alphabet) -> bool:
        """Whether it knows any character of an alphabet."""
        return not self.characters.isdisjoint("".join(alphabet.symbols))

    def log_probability(self, text: str) -> float:
        """Returns the natural logarithm of a text's probability, its end included."""
        characters = sorted(set(Alphabet.normalise_text(text))) or ["a"]
        bound = BoundCharacterModel(self._ngrams, Alphabet(characters), strict=False)
        state, total = bound.start, 0.0
        for symbol in bound.alphabet.encode(text):
            total += float(bound.row(state)[symbol])
            state = bound.follow(state, symbol)
        return total + float(bound.row(state)[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CharacterModel) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._content,)

    def __repr__(self) -> str:
        return f"CharacterModel(order {self.order}, {len(self)} n-grams of {len(self.characters)} characters)"


class BoundCharacterModel:
    """A character model in the symbols of an alphabet. A state is a node of the trie, the context so far."""

    def __init__(self, ngrams: NGrams, alphabet: Alphabet, *, strict: bool = True) -> None:
        """Matches symbols and tokens.

        Args:
            ngrams: The model.
            alphabet: The symbols.
            strict: Whether to refuse an alphabet of which the model knows nothing.

        Raises:
            OptionsError: If so.
        """
        known = _characters(ngrams.tokens)
        if strict and known.keys().isdisjoint("".join(alphabet.symbols)):
            raise OptionsError(FIELD, "it knows none of the characters of the model's alphabet")
        self.alphabet = alphabet
        self.unknown_characters = sorted(set("".join(alphabet.symbols)) - known.keys())
        self._ngrams = ngrams
        self._longest_context = ngrams.order - 1
        self._spellings = [
            (ngrams.tokens[END],),
            *(tuple(known.get(each, ngrams.tokens[UNKNOWN]) for each in symbol) for symbol in alphabet.symbols),
        ]
        self._simple = all(len(tokens) == 1 for tokens in self._spellings)
        self._first_tokens = np.array([tokens[0] for tokens in self._spellings])
        self._token_rows: dict[int, NDArray[np.float64]] = {ROOT: _root_row(ngrams)}
        self._rows: dict[int, NDArray[np.float64]] = {}
        self._depths = _depths(ngrams.trie)
        self.start = self._clip(ngrams.trie.find([ngrams.tokens[BEGIN]]))

    def row(self, state: int) -> NDArray[np.float64]:
        """Returns natural log-probabilities after a context: of the end at 0, then of every symbol (symbols)."""
        row = self._rows.get(state)
        if row is None:
            if self._simple:
                row = self._token_row(state)[self._first_tokens]
            else:
                row = np.array([self._score(state, tokens) for tokens in self._spellings])
            row.setflags(write=False)
            if len(self._rows) >= _REMEMBERED_ROWS:
                self._rows.clear()
            self._rows[state] = row
        return row

    def follow(self, state: int, symbol: int) -> int:
        """Returns the context after a symbol."""
        for token in self._spellings[symbol]:
            state = self._follow(state, token)
        return state

    def _score(self, state: int, tokens: tuple[int, ...]) -> float:
        total = 0.0
        for token in tokens:
            total += float(self._token_row(state)[token])
            state = self._follow(state, token)
        return total

    def _follow(self, state: int, token: int) -> int:
        """Finds the longest context that ends in a token."""
        trie, suffixes = self._ngrams.trie, self._ngrams.suffixes
        while True:
            child = trie.children(state).get(token, -1)
            if child >= 0:
                return self._clip(child)
            if state == ROOT:
                return ROOT
            state = int(suffixes[state])

    def _clip(self, node: int) -> int:
        """Shortens what is as long as the longest n-gram, and so has nothing after it."""
        while node > 0 and self._depths[node] > self._longest_context:
            node = int(self._ngrams.suffixes[node])
        return max(node, ROOT)

    def _token_row(self, state: int) -> NDArray[np.float64]:
        row = self._token_rows.get(state)
        if row is None:
            ngrams = self._ngrams
            row = self._token_row(int(ngrams.suffixes[state])) + ngrams.backoffs[state]
            tokens, nodes = ngrams.trie.children_of(state)
            row[tokens] = ngrams.values[nodes]
            if len(self._token_rows) >= _REMEMBERED_ROWS:
                root = self._token_rows[ROOT]
                self._token_rows.clear()
                self._token_rows[ROOT] = root
            self._token_rows[state] = row
        return row


def _characters(tokens: dict[str, int]) -> dict[str, int]:
    """Returns the token number of each character."""
    known = {token: number for token, number in tokens.items() if len(token) == 1}
    if SPACE in tokens:
        known[" "] = tokens[SPACE]
    return known


def _root_row(ngrams: NGrams) -> NDArray[np.float64]:
    """Probabilities without context; what a file lacks is rarer than all it has."""
    row = np.full(len(ngrams.tokens), np.nan)
    tokens, nodes = ngrams.trie.children_of(ROOT)
    row[tokens] = ngrams.values[nodes]
    begin, end, unknown = (ngrams.tokens[name] for name in (BEGIN, END, UNKNOWN))
    row[begin] = -np.inf  # it is never written
    if np.isnan(row[end]):
        row[end] = 0.0  # a model that knows no end does not weigh it
    if np.isnan(row[unknown]):
        row[unknown] = float(np.nanmin(np.delete(row, [begin, unknown]))) - math.log(_UNSEEN)
    return np.where(np.isnan(row), row[unknown], row)


def _depths(trie: Trie) -> NDArray[np.int8]:
    """Length of each node's n-gram (nodes): breadth first, a level begins where the first child of the last one is."""
    depths = np.zeros(len(trie), dtype=np.int8)
    begin, end, depth = 0, 1, 0
    while begin < end:
        depths[begin:end] = depth
        first = begin * trie.size
        begin, end, depth = end, int(np.searchsorted(trie.edges, first + (end - begin) * trie.size)) + 1, depth + 1
    return depths
