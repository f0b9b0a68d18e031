"""What steers a beam search beside the network: a lexicon that says what may follow, a language model how likely it is.

A text is scored by

    log p(text | image) + weight · log p(text) + bonus · symbols

(shallow fusion), where the first term is the network's, the second the language model's, its end included, and texts
outside the lexicon have none. A guide gives the last two terms symbol by symbol, from a state that holds the place in
the lexicon's trie and the context of the language model.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from glyphline.models.alphabet import Alphabet
from glyphline.models.decoding.language_model import BoundCharacterModel, CharacterModel
from glyphline.models.decoding.lexicon import BoundLexicon, Lexicon
from glyphline.models.decoding.trie import ROOT
from glyphline.models.errors import OptionsError

__all__ = ["Guide", "make_guide"]

END = 0
_REMEMBERED_STATES = 50_000
_REMEMBERED_STEPS = 200_000
_SPACE = " "


class Guide:
    """Scores what a text says, from symbol to symbol, for one alphabet.

    States are numbers that mean the same for the guide's life, so that they can be kept, compared and put in arrays.

    Attributes:
        start: The state before the first symbol.
        closed: Whether only some texts are possible.
        bonus: What every symbol adds.
        empty: What the empty text is scored with; a lexicon does not forbid it to an image that has no writing.
    """

    def __init__(
        self,
        alphabet: Alphabet,
        lexicon: BoundLexicon | None,
        model: BoundCharacterModel | None,
        *,
        several_words: bool = False,
        weight: float = 1.0,
        bonus: float = 0.0,
    ) -> None:
        """Puts a guide together.

        Args:
            alphabet: Of the network.
            lexicon: What a text may be; None for anything.
            model: How likely texts are; None to leave that to the network.
            several_words: Whether a text may be several words with single spaces between.
            weight: Of the language model.
            bonus: What every symbol adds.
        """
        self.closed = lexicon is not None
        self.bonus = bonus
        self._size = alphabet.size
        self._trie = None if lexicon is None else lexicon.trie
        self._nodes = 1 if self._trie is None else len(self._trie)
        self._model = model
        self._weight = weight
        self._space = alphabet.symbols.index(_SPACE) + 1 if several_words else -1
        self._rows: dict[int, NDArray[np.float64]] = {}
        self._factors: dict[int, list[float]] = {}
        self._following: dict[int, int] = {}
        self.start = (model.start if model is not None else 0) * self._nodes + ROOT
        self.empty = 0.0 if model is None else weight * float(model.row(model.start)[END])

    def row(self, state: int) -> NDArray[np.float64]:
        """Returns what each symbol adds after a state, and at 0 the end; −inf for what is impossible (symbols)."""
        row = self._rows.get(state)
        if row is None:
            row = self._work_out(*divmod(state, self._nodes))
            row.setflags(write=False)
            if len(self._rows) >= _REMEMBERED_STATES:
                self._rows.clear()
            self._rows[state] = row
        return row

    def factors(self, state: int) -> list[float]:
        """Returns the exponential of `row`."""
        factors = self._factors.get(state)
        if factors is None:
            factors = np.exp(self.row(state)).tolist()
            if len(self._factors) >= _REMEMBERED_STATES:
                self._factors.clear()
            self._factors[state] = factors
        return factors

    def follow(self, state: int, symbol: int) -> int:
        """Returns the state after a symbol that is possible."""
        key = state * self._size + symbol
        following = self._following.get(key)
        if following is None:
            following = self._find_following(state, symbol)
            if len(self._following) >= _REMEMBERED_STEPS:
                self._following.clear()
            self._following[key] = following
        return following

    def _find_following(self, state: int, symbol: int) -> int:
        context, node = divmod(state, self._nodes)
        if self._trie is not None:
            node = ROOT if symbol == self._space else self._trie.children(node)[symbol]
        if self._model is not None:
            context = self._model.follow(context, symbol)
        return context * self._nodes + node

    def score(self, text: tuple[int, ...]) -> float:
        """Returns what a whole text is scored with, −inf if it is impossible."""
        state, total = self.start, 0.0
        for symbol in text:
            added = float(self.row(state)[symbol])
            if added == -np.inf:
                return -np.inf
            total += added
            state = self.follow(state, symbol)
        return total + float(self.row(state)[END])

    def completions(self, state: int, most: int) -> list[tuple[int, ...]]:
        """Lists what completes the word at a state, the shortest first.

        Args:
            state: Of a guide with a lexicon.
            most: How many are enough.
        """
        assert self._trie is not None
        found: list[tuple[int, ...]] = []
        level: list[tuple[int, tuple[int, ...]]] = [(state % self._nodes, ())]
        while level and len(found) < most:
            found += [text for node, text in level if self._trie.ends[node]]
            level = [
                (child, (*text, symbol))
                for node, text in level[:most]
                for symbol, child in self._trie.children(node).items()
            ]
        return found[:most]

    def _work_out(self, context: int, node: int) -> NDArray[np.float64]:
        scores = np.full(self._size, self.bonus)
        scores[END] = 0.0
        if self._model is not None:
            scores += self._weight * self._model.row(context)
        if self._trie is None:
            return scores
        possible = list(self._trie.children(node))
        if self._trie.ends[node]:
            possible.append(END)
            if self._space > 0:
                possible.append(self._space)
        row = np.full(self._size, -np.inf)
        row[possible] = scores[possible]
        return row


@lru_cache(maxsize=8)
def make_guide(
    alphabet: Alphabet,
    lexicon: Lexicon | None,
    model: CharacterModel | None,
    several_words: bool,
    weight: float,
    bonus: float,
) -> Guide:
    """Makes a guide, or returns that of an earlier call with the same arguments.

    Raises:
        OptionsError: If the lexicon or the language model does not suit the alphabet.
    """
    bound = None
    if several_words and _SPACE not in alphabet.symbols:
        raise OptionsError("several_words", "the model's alphabet has no space to put between words")
    if lexicon is not None:
        bound = (lexicon.parts() if several_words else lexicon).bind(alphabet)
    return Guide(
        alphabet,
        bound,
        None if model is None else model.bind(alphabet),
        several_words=several_words,
        weight=weight,
        bonus=bonus,
    )
