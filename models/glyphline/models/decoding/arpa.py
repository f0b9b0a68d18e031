"""ARPA files: the n-grams of characters that they hold, read and checked line by line.

What the n-grams say of a text is for `language_model` to work out.
"""

import gzip
import io
import lzma
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from glyphline.models.decoding.trie import Trie, build_trie
from glyphline.models.errors import OptionsError

__all__ = ["BEGIN", "END", "FIELD", "MAX_ORDER", "SPACE", "UNKNOWN", "NGrams", "parse_arpa"]

MAX_ORDER = 10
BEGIN, END, UNKNOWN, SPACE = "<s>", "</s>", "<unk>", "<space>"
FIELD = "language_model"
"""The option that is at fault where a model is."""

_SPELLINGS = {"<UNK>": UNKNOWN, "▁": SPACE}
_ROUNDING = 1e-6  # a log10 probability may be above 0 by this
_BLOCK_LINES = 16_384


@dataclass(frozen=True, slots=True, eq=False)
class NGrams:
    """The n-grams of a file as a trie of tokens.

    The numbers have 32 bits: files have two to seven digits, and a worker holds more than a million of them.

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
    values: NDArray[np.float32]
    backoffs: NDArray[np.float32]
    suffixes: NDArray[np.int32]


def parse_arpa(content: bytes, name: str) -> NGrams:
    """Reads the content of an ARPA file.

    Args:
        content: UTF-8, or that packed by gzip or xz.
        name: What messages call it.

    Raises:
        OptionsError: If it is none; the message names the line.
    """
    try:
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        elif content.startswith(b"\xfd7zXZ\x00"):
            content = lzma.decompress(content)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise OptionsError(FIELD, f"{name}: damaged gzip or xz: {error}") from error
    try:
        return _Reader(content, name).read()
    except UnicodeDecodeError as error:
        raise OptionsError(FIELD, f"{name}: not UTF-8: {error.reason}") from error


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

    def read(self) -> NGrams:
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
        nodes = np.concatenate([_nodes(trie, part) for part in grams])
        node_values, node_backoffs = np.full(len(trie), np.nan, np.float32), np.zeros(len(trie), np.float32)
        node_values[nodes], node_backoffs[nodes] = np.concatenate(values), np.concatenate(backoffs)
        return NGrams(order, self._tokens, trie, node_values, node_backoffs, _suffixes(trie, grams))

    def _error(self, message: str) -> OptionsError:
        return OptionsError(FIELD, f"{self._name}, line {self._line}: {message}")

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
            size = min(_BLOCK_LINES, count - first)
            block = list(islice(self._lines, size))
            found = self._read_alike(length, block) if len(block) == size else None
            if found is None:
                self._lines = chain(block, self._lines)
                found = self._read_each(length, size)
            else:
                self._line += size
            part = slice(first, first + size)
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


def _nodes(trie: Trie, grams: NDArray[np.int64]) -> NDArray[np.int64]:
    """Finds the node of every n-gram (n-grams), -1 for what the trie lacks."""
    nodes = np.zeros(len(grams), dtype=np.int64)
    for column in grams.T:
        nodes = trie.follow(nodes, column)
    return nodes


def _suffixes(trie: Trie, grams: list[NDArray[np.int64]]) -> NDArray[np.int32]:
    """Finds the node of the longest proper suffix of every n-gram (nodes)."""
    suffixes = np.zeros(len(trie), dtype=np.int32)
    for part in grams[1:]:
        nodes = _nodes(trie, part)
        open_rows = np.arange(len(part))
        for first in range(1, part.shape[1]):
            found = _nodes(trie, part[open_rows, first:])
            suffixes[nodes[open_rows[found >= 0]]] = found[found >= 0]
            open_rows = open_rows[found < 0]
            if not len(open_rows):
                break
    return suffixes
