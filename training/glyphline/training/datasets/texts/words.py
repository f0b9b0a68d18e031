"""Word lists, and words that could be in them."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

from glyphline.training.datasets.dice import Dice
from glyphline.training.errors import DataError

_LEARNT_FROM = 30_000  # words of a list: more change the babble no more
_CONTEXT = 3  # letters
_END = "\0"


def read_words(path: Path) -> tuple[str, ...]:
    """Reads a word list: one word a line, UTF-8; blank lines and what follows a slash (flags of hunspell) are left out.

    Raises:
        DataError: If the file is missing, is not UTF-8, or has no words.
    """
    try:
        return _read_words(path, path.stat().st_mtime_ns)
    except FileNotFoundError:
        raise DataError(
            f"{path} is missing: a word list has one word a line; `python scripts/fetch_words.py --output DATA/words`"
            " fetches some"
        ) from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from None


@lru_cache(maxsize=32)
def _read_words(path: Path, changed: int) -> tuple[str, ...]:
    """Reads a list once for all sources that draw from it; `changed` is when the file was."""
    del changed
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    words = (unicodedata.normalize("NFC", line.split("/")[0].strip()) for line in lines)
    found = tuple(dict.fromkeys(word for word in words if word))
    if not found:
        raise DataError(f"{path} has no words")
    return found


@dataclass(frozen=True)
class Babble:
    """Words that could be: each letter follows the letters before it as often as in a list of words.

    Attributes:
        follows: For a context of up to three letters, what follows it, and the running sums of how often.
    """

    follows: dict[str, tuple[tuple[str, ...], tuple[int, ...]]]

    def draw(self, dice: Dice, longest: int) -> str:
        """Returns one word of at most `longest` letters."""
        word = ""
        while len(word) < longest:
            letter = dice.pick_by(*self.follows[word[-_CONTEXT:]])
            if letter == _END:
                break
            word += letter
        return word


def learn_babble(words: Iterable[str]) -> Babble:
    """Counts which letters follow which.

    Raises:
        DataError: If there are no words.
    """
    counts: dict[str, Counter[str]] = {}
    for word in words:
        for index, letter in enumerate(word + _END):
            counts.setdefault(word[max(0, index - _CONTEXT) : index], Counter())[letter] += 1
    if not counts:
        raise DataError("there are no words to learn babble from")
    return Babble({c: (tuple(n), tuple(accumulate(n.values()))) for c, n in counts.items()})


def thin(words: Sequence[str]) -> Sequence[str]:
    """Returns enough of a long list to learn babble from, evenly from the whole of it."""
    return words[:: max(1, len(words) // _LEARNT_FROM)]


COMMON = {
    "en": "the of and to a in is it you that he was for on are with as I his they be at one have this from or had"
    " by hot but some what there we can out other were all your when up use word how said an each she which do"
    " their time if will way about many then them would write like so these her long make thing see him two"
    " has look more day could go come did my sound no most number who over know water than call first people"
    " may down side been now find any new open sale free shop road street park hotel bar cafe exit stop"
    " welcome office house press best our off only not",
    "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus"
    " er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber"
    " vor zur bis mehr durch man sein wurde sei Straße Platz Weg Haus Stadt Jahr Zeit Herr Frau groß schön Tür"
    " Öl Übung müssen können während weiß Größe Köln München alte neue am Ring Allee Gasse Bahnhof Kirche Berg"
    " Dorf Hof Markt",
    "fr": "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont avec ou"
    " son à être aux été d'un l'on cette mais c'est même où très français année après première général même"
    " déjà là côté père mère république société siècle âge être œuvre château forêt île août noël garçon façon"
    " leçon reçu hôtel rue place avenue monsieur madame je soussigné mon ma mes notre votre ainsi donc deux"
    " trois tout tous bien fait",
}
"""Some of the commonest words of each language, with those that have its accents: lists of all words drown them."""

RECEIPT = (
    "TOTAL SUBTOTAL CASH CHANGE TAX INVOICE RECEIPT DATE TIME CASHIER QTY PRICE AMOUNT DISCOUNT ROUNDING"
    " BALANCE CARD VISA ITEM ITEMS NO. TEL FAX REF ID PAYMENT DUE NET GROSS VAT SALES TABLE ORDER CODE"
    " DESCRIPTION UNIT THANK YOU PLEASE COME AGAIN GOODS SOLD REFUND SERVICE CHARGE MEMBER POINTS Total"
    " Subtotal Cash Change Tax Invoice Date Time Qty Amount Discount Balance Page Item Price"
)
"""What stands on receipts and forms."""

MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
}
"""Names of the months."""
