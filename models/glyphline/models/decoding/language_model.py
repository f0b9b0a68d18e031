"""A language model of characters: how likely a text is, whatever the image shows.

It is a back-off model of n-grams as ARPA files hold it. The probability of a character after a context is that of the
longest n-gram that the file has, times the back-off weights of the longer contexts that it has without that character:

    log p(c | h) = log p(hc)                  if the file has hc
                 = b(h) + log p(c | h′)       else, where h′ is h without its first character

and b(h) = 0 if the file lacks h.

A context is a node of a trie, and each node knows the node of its longest suffix, so that the probabilities of all
characters after a context are those after its suffix, lowered by its back-off weight, with its own n-grams laid over.
"""

import gzip
import hashlib
import io
import lzma
import math
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from glyphline.models.alphabet import Alphabet
from glyphline.models.decoding.trie import ROOT, Trie, build_trie
from glyphline.models.errors import OptionsError

__all__ = ["BEGIN", "END", "MAX_ORDER", "SPACE", "UNKNOWN", "BoundCharacterModel", "CharacterModel"]

MAX_ORDER = 10
BEGIN, END, UNKNOWN, SPACE = "<s>", "</s>", "<unk>", "<space>"
_SPELLINGS = {"<UNK>": UNKNOWN, "▁": SPACE}
_FIELD = "language_model"
_UNSEEN = 10.0  # how many times rarer than its rarest a character is that a file without <unk> lacks
_ROUNDING = 1e-6  # a log10 probability may be above 0 by this
_BLOCK_LINES = 16_384
_REMEMBERED_ROWS = 4_000  # of probabilities, each some hundred numbers; more are worked out again


@dataclass(frozen=True, slots=True, eq=False)
class _NGrams:
    """The n-grams of a file as a trie of tokens.

    Attributes:
        order: Length of the longest.
        tokens: Number of each token.
        trie: Of token numbers.
        values: Natural log-probability of each node's n-gram (nodes), NaN at the root.
        backoffs: Natural logarithm of each node's back-off weight (nodes), at the root 0.
        suffixes: The node of the longest proper suffix of each node's n-gram (nodes), at the root the root.
    """

    order: int
    tokens: dict[str, int]
    trie: Trie
    values: NDArray[np.float64]
    backoffs: NDArray[np.float64]
    suffixes: NDArray[np.int32]


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
        self._ngrams = _parse(content, name)
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
            raise OptionsError(_FIELD, f"{path}: {error.strerror}") from error
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

    def __init__(self, ngrams: _NGrams, alphabet: Alphabet, *, strict: bool = True) -> None:
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
            raise OptionsError(_FIELD, "it knows none of the characters of the model's alphabet")
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


def _root_row(ngrams: _NGrams) -> NDArray[np.float64]:
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


def _parse(content: bytes, name: str) -> _NGrams:
    """Reads an ARPA file.

    Raises:
        OptionsError: If it is none; the message names the line.
    """
    try:
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        elif content.startswith(b"\xfd7zXZ\x00"):
            content = lzma.decompress(content)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise OptionsError(_FIELD, f"{name}: damaged gzip or xz: {error}") from error
    try:
        return _Reader(content, name).read()
    except UnicodeDecodeError as error:
        raise OptionsError(_FIELD, f"{name}: not UTF-8: {error.reason}") from error


_Numbers: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]
"""Of some n-grams of one length: tokens (n-grams, length), log10 probabilities and back-offs (n-grams)."""


class _Reader:
    """Goes through an ARPA file by blocks of lines: a million of them at once would take hundreds of megabytes."""

    def __init__(self, content: bytes, name: str) -> None:
        # Ends of lines are line feeds alone: `splitlines` would take some characters for others.
        self._lines: Iterator[str] = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="\n")
        self._count = content.count(b"\n") + 1
        self._held: str | None = None
        self._name = name
        self._line = 0
        self._tokens: dict[str, int] = {BEGIN: 0, END: 1, UNKNOWN: 2}

    def read(self) -> _NGrams:
        """Reads header and sections."""
        counts = self._header()
        order = len(counts)
        grams: list[NDArray[np.int64]] = []
        values: list[NDArray[np.float64]] = []
        backoffs: list[NDArray[np.float64]] = []
        for length, count in enumerate(counts, 1):
            for target, part in zip((grams, values, backoffs), self._section(length, count), strict=True):
                target.append(part)  # type: ignore[attr-defined]
        lengths = np.concatenate([np.full(len(part), length) for length, part in enumerate(grams, 1)])
        flat = np.concatenate([part.ravel() for part in grams])
        trie = build_trie(flat, lengths, len(self._tokens))
        if len(trie) - 1 != len(lengths):
            raise self._error("an n-gram occurs twice, or one lacks the shorter one it begins with")
        nodes = np.concatenate([self._nodes(trie, part) for part in grams])
        node_values, node_backoffs = np.full(len(trie), np.nan), np.zeros(len(trie))
        node_values[nodes], node_backoffs[nodes] = np.concatenate(values), np.concatenate(backoffs)
        return _NGrams(order, self._tokens, trie, node_values, node_backoffs, _suffixes(trie, grams))

    @staticmethod
    def _nodes(trie: Trie, grams: NDArray[np.int64]) -> NDArray[np.int64]:
        nodes = np.zeros(len(grams), dtype=np.int64)
        for column in grams.T:
            nodes = trie.follow(nodes, column)
        return nodes

    def _error(self, message: str) -> OptionsError:
        return OptionsError(_FIELD, f"{self._name}, line {self._line}: {message}")

    def _next(self) -> str:
        """Returns the next line that is not empty; past the last one, an empty one."""
        if self._held is not None:
            line, self._held = self._held, None
            return line
        for line in self._lines:
            self._line += 1
            if line := line.strip(" \t\r\n"):
                return line
        return ""

    def _header(self) -> list[int]:
        line = self._next()
        while line and line != "\\data\\":
            line = self._next()
        if not line:
            raise self._error("no \\data\\ section: this is no ARPA file")
        counts: list[int] = []
        while (line := self._next()).startswith("ngram"):
            match = re.fullmatch(r"ngram\s+(\d+)\s*=\s*(\d+)", line)
            if match is None or int(match[1]) != len(counts) + 1:
                raise self._error(f"expected 'ngram {len(counts) + 1}=COUNT', not {line!r}")
            counts.append(int(match[2]))
        if not counts or not counts[0]:
            raise self._error("the header names no n-grams")
        if len(counts) > MAX_ORDER:
            raise self._error(f"a model of order {len(counts)}; at most {MAX_ORDER} is read")
        self._held = line
        return counts

    def _section(self, length: int, count: int) -> _Numbers:
        """Reads the n-grams of one length: tokens (n-grams, length), values and back-offs (n-grams)."""
        title = self._next()
        if title != f"\\{length}-grams:":
            raise self._error(f"expected '\\{length}-grams:', not {title!r}")
        if count > self._count - self._line:
            raise self._error(f"the header promises {count} of them, more than there are lines")
        grams = np.zeros((count, length), dtype=np.int64)
        values, backoffs = np.zeros(count), np.zeros(count)
        for first in range(0, count, _BLOCK_LINES):
            part = slice(first, min(first + _BLOCK_LINES, count))
            block = list(islice(self._lines, part.stop - first))
            found = self._read_alike(length, block)
            if found is None:
                self._lines = chain(block, self._lines)
                found = self._read_each(length, len(block))
            else:
                self._line += len(block)
            grams[part], values[part], backoffs[part] = found
        return grams, values * math.log(10.0), backoffs * math.log(10.0)

    def _read_alike(self, length: int, block: list[str]) -> _Numbers | None:
        """Reads many lines at once, several times as fast as one by one; None if they are not all alike and right."""
        end = " \n "
        fields = "".join(block).replace("\t", " ").replace("\n", end).split(" ")
        width = fields.index("\n") if "\n" in fields else 0
        aligned = fields[width :: width + 1] == ["\n"] * len(block) and len(fields) == len(block) * (width + 1) + 1
        if length == 1 or not length + 1 <= width <= length + 2 or not aligned:
            return None
        columns = [fields[column : -1 : width + 1] for column in range(width)]
        try:
            values = np.array(list(map(float, columns[0])))
            backoffs = np.array(list(map(float, columns[-1]))) if width > length + 1 else np.zeros(len(block))
            grams = np.array([list(map(self._tokens.__getitem__, column)) for column in columns[1 : length + 1]]).T
        except (ValueError, KeyError):
            return None
        if not (np.isfinite(values) & (values <= _ROUNDING) & np.isfinite(backoffs)).all():
            return None
        return grams, np.minimum(values, 0.0), backoffs

    def _read_each(self, length: int, count: int) -> _Numbers:
        """Reads lines one by one."""
        grams = np.zeros((count, length), dtype=np.int64)
        values, backoffs = np.zeros(count), np.zeros(count)
        for row, fields in enumerate(self._rows(length, count)):
            try:
                value = float(fields[0])
                backoffs[row] = float(fields[length + 1]) if len(fields) > length + 1 else 0.0
                if length == 1:
                    self._add_token(fields[1])
                grams[row] = [self._tokens[_SPELLINGS.get(token, token)] for token in fields[1 : length + 1]]
            except ValueError as error:
                raise self._error(f"no number: {error}") from error
            except KeyError as error:
                raise self._error(f"{error.args[0]!r} is not among the 1-grams") from error
            if not -math.inf < value <= _ROUNDING or not math.isfinite(backoffs[row]):
                raise self._error(f"log10 probability {fields[0]}: it must be finite and at most 0")
            values[row] = min(value, 0.0)
        return grams, values, backoffs

    def _rows(self, length: int, count: int) -> Iterator[list[str]]:
        for _ in range(count):
            line = self._next()
            fields = [each for each in line.replace("\t", " ").split(" ") if each]
            if not length + 1 <= len(fields) <= length + 2:
                raise self._error(f"expected a {length}-gram with its probability, one of {count}, not {line!r}")
            yield fields

    def _add_token(self, token: str) -> None:
        token = _SPELLINGS.get(token, token)
        if len(token) > 1 and token not in (BEGIN, END, UNKNOWN, SPACE):
            raise self._error(f"the token {token!r} is no single character: this is no model of characters")
        self._tokens.setdefault(token, len(self._tokens))


def _suffixes(trie: Trie, grams: list[NDArray[np.int64]]) -> NDArray[np.int32]:
    """Finds the node of the longest proper suffix of every n-gram (nodes)."""
    suffixes = np.zeros(len(trie), dtype=np.int32)
    for part in grams[1:]:
        nodes = _Reader._nodes(trie, part)
        open_rows = np.arange(len(part))
        for first in range(1, part.shape[1]):
            found = _Reader._nodes(trie, part[open_rows, first:])
            suffixes[nodes[open_rows[found >= 0]]] = found[found >= 0]
            open_rows = open_rows[found < 0]
            if not len(open_rows):
                break
    return suffixes
