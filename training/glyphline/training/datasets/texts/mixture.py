"""One text after the other: of kinds by their shares, in the alphabet and in the length."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from glyphline.models.alphabet import Alphabet
from glyphline.training.config.texts import TextsConfig
from glyphline.training.datasets.dice import Dice
from glyphline.training.datasets.texts import shapes
from glyphline.training.datasets.texts.words import COMMON, RECEIPT, Babble, learn_babble, read_words, thin
from glyphline.training.errors import DataError

_TRIES = 12
_BRACKETS = (("(", ")"), ('"', '"'), ("'", "'"), ("“", "”"), ("«", "»"), ("„", "“"), ("[", "]"), ("‘", "’"))
_RECEIPT = tuple(RECEIPT.split())
_ENDS = ".,;:!?.,.,-…"


@dataclass(frozen=True)
class TextMixture:
    """Draws texts.

    Attributes:
        config: Kinds, and their shares.
        longest: Greatest number of characters.
        characters: Characters that may occur; None where any may.
        words: Words of each list, made of these characters.
        common: The commonest words.
        babble: Of the lists; None where there are none.
    """

    config: TextsConfig
    longest: int
    characters: frozenset[str] | None = None
    words: tuple[tuple[str, ...], ...] = ()
    common: tuple[str, ...] = ()
    babble: Babble | None = field(default=None, repr=False)
    _kinds: tuple[tuple[str, ...], tuple[float, ...]] = field(init=False, repr=False)
    _cases: tuple[tuple[str, ...], tuple[float, ...]] = field(init=False, repr=False)
    _drawable: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Adds up the shares."""
        for name, shares in (("_kinds", self.config.shares()), ("_cases", self.config.cases.model_dump())):
            object.__setattr__(self, name, (tuple(shares), tuple(accumulate(shares.values()))))
        known = self.characters or frozenset(c for words in self.words for word in words for c in word) | set("0")
        object.__setattr__(self, "_drawable", tuple(sorted(c for c in known if not c.isspace())))

    def draw(self, dice: Dice, only: frozenset[str] | None = None) -> str:
        """Returns one text: never empty, never longer than `longest`, of the alphabet, with single spaces within.

        Args:
            dice: Source of randomness.
            only: What can be drawn, as by a font; characters that cannot are avoided, and dropped in the end.

        Raises:
            DataError: If nothing can be drawn.
        """
        for attempt in range(_TRIES):
            wanted = self._any(dice)
            text = self.fit(wanted, only)
            if text and (attempt >= _TRIES // 2 or len(text) * 10 >= len(wanted.strip()) * 9):
                return text
        able = [c for c in self._drawable if only is None or c in only]
        if not able:
            raise DataError("not one character of the alphabet can be drawn")
        return dice.pick(able)

    def fit(self, text: str, only: frozenset[str] | None = None) -> str:
        """Brings a text into the alphabet and the length.

        A character that is not in it is written in the other case where that is, and left out where neither is; what is
        too long ends at a space where one is near.
        """
        text = unicodedata.normalize("NFC", text)
        for known in (self.characters, only):
            if known is not None and not known.issuperset(text):
                text = "".join(_in_case(c, known) for c in text)
        text = " ".join(text.split())
        if len(text) > self.longest:
            cut = text[: self.longest + 1].rfind(" ")
            text = text[: cut if cut > self.longest // 3 else self.longest].strip()
        return text

    def _any(self, dice: Dice) -> str:
        kind = dice.pick_by(*self._kinds)
        if kind == "words":
            return self._mark(self._case(self._word(dice), dice), dice)
        if kind == "lines":
            return self._line(dice)
        if kind == "babble" and self.babble is not None:
            return self._case(self.babble.draw(dice, min(self.longest, 14)), dice)
        if kind == "characters":
            pieces = [dice.pick(self._drawable) for _ in range(1 + int(min(12, self.longest) * dice.unit() ** 1.5))]
            if len(pieces) > 4 and dice.chance(0.3):
                pieces[dice.whole(1, len(pieces) - 1)] = " "
            return "".join(pieces)
        if kind == "receipts":
            return self._receipt(dice)
        return self._shape(kind, dice)

    def _shape(self, kind: str, dice: Dice) -> str:
        def word() -> str:
            found = self._word(dice)
            return "".join(c for c in found if c.isalnum() and c.isascii()) or "info"

        drawn: dict[str, Callable[[], str]] = {
            "prices": lambda: shapes.price(dice),
            "dates": lambda: shapes.date(dice, dice.pick(self.config.languages)),
            "times": lambda: shapes.time(dice),
            "codes": lambda: shapes.code(dice),
            "phones": lambda: shapes.phone(dice),
            "emails": lambda: shapes.email(dice, word),
            "urls": lambda: shapes.url(dice, word),
        }
        return drawn.get(kind, lambda: shapes.number(dice))()

    def _word(self, dice: Dice) -> str:
        """A word of the lists or of the commonest that is not longer than a text may be, where one is soon found."""
        word = "a"
        for _ in range(4):
            if self.common and (not self.words or dice.chance(self.config.common)):
                word = dice.pick(self.common)
            elif self.words:
                word = dice.pick(dice.pick(self.words))
            if len(word) <= self.longest:
                break
        return word

    def _case(self, word: str, dice: Dice) -> str:
        case = dice.pick_by(*self._cases)
        if case == "lower":
            return word.lower()
        if case == "title":
            return word[:1].upper() + word[1:].lower()
        if case == "upper":
            return word.upper() if "ß" not in word else word.replace("ß", "ss").upper()
        if case == "mixed":
            return "".join(c.upper() if dice.chance(0.5) and len(c.upper()) == 1 else c.lower() for c in word)
        return word

    def _mark(self, text: str, dice: Dice) -> str:
        """Puts punctuation around a text, for a share of them."""
        if not dice.chance(self.config.marks):
            return text
        kind = dice.unit()
        if kind < 0.55:
            return text + dice.pick(_ENDS)
        if kind < 0.8:
            first, last = dice.pick(_BRACKETS)
            return f"{first}{text}{last}" if dice.chance(0.7) else f"{first}{text}" if dice.chance(0.5) else text + last
        if kind < 0.9:
            return text + dice.pick(("'s", "’s", "s'", "...", " -", " &", "!!"))
        return dice.pick(("-", "*", "#", "& ", "- ", "@", "/", "_", "~", "= ", "+ ", "$ ", "% ", "<", ">")) + text

    def _line(self, dice: Dice) -> str:
        """Several words as in a line of text: one case for all or that of a sentence, commas, numbers now and then."""
        room = 1 + int(self.longest * (0.25 + 0.75 * dice.unit()))
        manner = dice.unit()
        most = dice.whole(2, self.config.most_words + 1) if self.config.most_words > 1 else 1
        words: list[str] = []
        length = 0
        for place in range(most):
            word = self._word(dice)
            if manner < 0.16:
                word = word.upper() if "ß" not in word else word.replace("ß", "ss").upper()
            elif manner < 0.3 or (manner < 0.42 and place == 0):
                word = word[:1].upper() + word[1:]
            if dice.chance(0.05):
                word = shapes.number(dice)
            if dice.chance(self.config.marks * 0.5):
                word = (
                    word + dice.pick(",,,;:.") if dice.chance(0.75) else "{1}{0}{2}".format(word, *dice.pick(_BRACKETS))
                )
            length += len(word) + 1
            if words and length > room:
                break
            words.append(word)
        joint = "-" if dice.chance(0.04) else " "
        text = joint.join(words)
        if dice.chance(0.15):
            return text + dice.pick(".-.,")
        return text

    def _receipt(self, dice: Dice) -> str:
        words = " ".join(dice.pick(_RECEIPT) for _ in range(dice.whole(1, 4)))
        kind = dice.unit()
        if kind < 0.4:
            return words
        value = dice.pick((shapes.price, shapes.number, shapes.code, shapes.time))(dice)
        if kind < 0.55:
            return f"{dice.whole(1, 20)} {dice.pick(('x', 'X', '@', 'PCS', 'PC', 'pcs'))} {shapes.price(dice)}"
        return f"{words}{dice.pick((': ', ' : ', ':', ' ', ' #', ' @ ', ' - '))}{value}"


def _in_case(character: str, known: frozenset[str]) -> str:
    if character in known:
        return character
    other = character.swapcase()
    return other if other in known else ""


def build_texts(config: TextsConfig, longest: int, root: Path, alphabet: Alphabet | None = None) -> TextMixture:
    """Reads word lists and learns babble.

    Args:
        config: Kinds, shares and lists.
        longest: Greatest number of characters.
        root: Folder below which the lists lie.
        alphabet: What may occur; any where it is not given.

    Raises:
        DataError: If a list is missing, or has no word of the alphabet.
    """
    characters = None
    if alphabet is not None:
        # Symbols of several characters are written by their characters where each of them is a symbol, too.
        characters = frozenset(symbol for symbol in alphabet.symbols if len(symbol) == 1)
        if not any(not c.isspace() for c in characters):
            raise DataError("the alphabet has no symbol of one character, so no text can be drawn with it")
    kept = []
    for path in config.lists:
        words = read_words(root / path)
        if characters is not None:
            either = characters | {c.swapcase() for c in characters}
            words = tuple(word for word in words if either.issuperset(word))
        possessive = [word for word in words if word.endswith("'s")]
        if len(possessive) * 10 > len(words):  # English lists have one for every noun, as no text has
            words = tuple(word for word in words if not word.endswith("'s")) + tuple(possessive[::12])
        if not words:
            raise DataError(f"{root / path}: no word of it is made of the alphabet alone")
        kept.append(words)
    common = [word for language in config.languages for word in COMMON[language].split()]
    if characters is not None:
        either = characters | {c.swapcase() for c in characters}
        common = [word for word in common if either.issuperset(word)]
    babble = learn_babble([word for words in kept for word in thin(words)]) if kept else None
    return TextMixture(config, longest, characters, tuple(kept), tuple(dict.fromkeys(common)), babble)
