"""The symbols a recogniser can write, and the special classes its networks need."""

import unicodedata
from collections.abc import Iterable, Sequence

from glyphline.models.errors import AlphabetError

__all__ = ["Alphabet"]

_NAMED_LINES = 5  # how many line numbers one message lists for a character


class Alphabet:
    """Ordered, unique symbols in Unicode normal form C.

    The network class of `symbols[i]` is `i + 1`. Class 0 is the blank of a CTC head and the end of an attention head;
    one more class, `start`, exists only as the first input of an attention decoder. A symbol may hold several
    characters, so that a vocabulary of words or word pieces is an alphabet too.

    Texts are in logical order, as Unicode stores them.

    Attributes:
        symbols: The symbols in class order.
        blank: CTC's blank class, always 0.
        end: The attention decoder's end class, always 0.
        start: The attention decoder's first input, `len(symbols) + 1`. No network outputs it.
        size: Number of classes a network outputs, `len(symbols) + 1`.
    """

    __slots__ = ("_classes", "_longest", "symbols")

    blank: int = 0
    end: int = 0

    def __init__(self, symbols: Sequence[str]) -> None:
        """Checks and keeps the symbols.

        Args:
            symbols: At least one symbol; a plain string stands for its characters.

        Raises:
            AlphabetError: If there is none, one is empty or not in normal form C, or one occurs twice.
        """
        if not symbols:
            raise AlphabetError("an alphabet needs at least one symbol")
        classes: dict[str, int] = {}
        for position, symbol in enumerate(symbols):
            if not symbol:
                raise AlphabetError(f"symbol {position} is empty")
            if not unicodedata.is_normalized("NFC", symbol):
                raise AlphabetError(f"symbol {position} {_spell(symbol)} is not in Unicode normal form C")
            if symbol in classes:
                raise AlphabetError(f"symbol {position} {_spell(symbol)} repeats symbol {classes[symbol] - 1}")
            classes[symbol] = position + 1
        self.symbols: tuple[str, ...] = tuple(symbols)
        self._classes = classes
        self._longest = max(map(len, symbols))

    @property
    def start(self) -> int:
        """First input of an attention decoder; no network outputs it."""
        return len(self.symbols) + 1

    @property
    def size(self) -> int:
        """Number of classes a network outputs: the symbols and the blank or end."""
        return len(self.symbols) + 1

    @staticmethod
    def normalise_text(text: str) -> str:
        """Returns the text in Unicode normal form C, the one form labels and predictions are compared in."""
        return unicodedata.normalize("NFC", text)

    def encode(self, text: str) -> list[int]:
        """Turns a text into network classes, taking the longest symbol that fits at each position.

        Args:
            text: A label; it is brought to normal form C first. It may be empty.

        Returns:
            One class per symbol, each in `[1, len(symbols)]`.

        Raises:
            AlphabetError: If characters are left that no symbol covers. The message lists them.
        """
        classes, unknown = self._scan(text)
        if unknown:
            raise AlphabetError(f"not in the alphabet: {_list_characters(unknown)}")
        return classes

    def decode(self, ids: Iterable[int]) -> str:
        """Joins the symbols of network classes.

        Args:
            ids: Classes in `[1, len(symbols)]`. Decoders drop blank, end and start before they come here.

        Returns:
            The text, in normal form C: symbols that combine with their neighbours are composed.

        Raises:
            AlphabetError: If a class stands for no symbol.
        """
        pieces = []
        for value in ids:
            if not 1 <= value <= len(self.symbols):
                raise AlphabetError(f"class {value} stands for no symbol; symbols are 1 to {len(self.symbols)}")
            pieces.append(self.symbols[value - 1])
        return self.normalise_text("".join(pieces))

    def unknown_characters(self, text: str) -> list[str]:
        """Returns the distinct characters of the text, after normalisation, that no symbol covers, in order."""
        return list(dict.fromkeys(self._scan(text)[1]))

    def check_labels(self, labels: Iterable[tuple[int, str]]) -> None:
        """Makes sure that every label can be encoded, before hours of training find out.

        Args:
            labels: Pairs of line number and label.

        Raises:
            AlphabetError: If a label cannot be encoded. The message lists every character and the lines it is on.
        """
        lines: dict[str, list[int]] = {}
        for line, label in labels:
            for character in self.unknown_characters(label):
                lines.setdefault(character, []).append(line)
        if lines:
            found = "; ".join(f"{_spell(character)} in {_list_lines(lines[character])}" for character in sorted(lines))
            raise AlphabetError(f"labels hold characters that the alphabet lacks: {found}")

    def _scan(self, text: str) -> tuple[list[int], list[str]]:
        """Splits a text greedily into classes and the characters that no symbol starts at."""
        text = self.normalise_text(text)
        classes: list[int] = []
        unknown: list[str] = []
        position = 0
        while position < len(text):
            for length in range(min(self._longest, len(text) - position), 0, -1):
                value = self._classes.get(text[position : position + length])
                if value is not None:
                    classes.append(value)
                    position += length
                    break
            else:
                unknown.append(text[position])
                position += 1
        return classes, unknown

    def __len__(self) -> int:
        return len(self.symbols)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alphabet) and self.symbols == other.symbols

    def __hash__(self) -> int:
        return hash(self.symbols)

    def __repr__(self) -> str:
        return f"Alphabet({list(self.symbols)!r})"


def _spell(text: str) -> str:
    """Shows a text so that combining marks, blanks and look-alikes can be told apart: 'é' (U+0065 U+0301)."""
    return f"{text!r} ({' '.join(f'U+{ord(character):04X}' for character in text)})"


def _list_characters(characters: Iterable[str]) -> str:
    return ", ".join(_spell(character) for character in dict.fromkeys(characters))


def _list_lines(lines: Sequence[int]) -> str:
    shown = ", ".join(map(str, lines[:_NAMED_LINES]))
    more = len(lines) - _NAMED_LINES
    noun = "line" if len(lines) == 1 else "lines"
    return f"{noun} {shown} and {more} more" if more > 0 else f"{noun} {shown}"
