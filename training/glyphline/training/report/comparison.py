"""What of two texts is compared: all of them, or only what a use depends on."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from types import MappingProxyType


def everything(text: str) -> str:
    """Keeps a text as it is, in normal form C."""
    return unicodedata.normalize("NFC", text)


def letters_and_digits(text: str) -> str:
    """Keeps letters and digits, without regard to case or to how wide they are written (`Ａ` is `A`)."""
    return "".join(character for character in unicodedata.normalize("NFKC", text).casefold() if character.isalnum())


def digits(text: str) -> str:
    """Keeps the digits 0 to 9, however wide they are written."""
    return "".join(character for character in unicodedata.normalize("NFKC", text) if character in "0123456789")


COMPARISONS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {"all": everything, "letters-and-digits": letters_and_digits, "digits": digits}
)
"""Ways to compare a reading with the truth, by the names that configurations and commands call them."""
