"""How to decode: what a caller may ask for, checked and completed by what the bundle says."""

import unicodedata
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from glyphline.models.alphabet import Alphabet
from glyphline.models.decoding.guide import Guide, make_guide
from glyphline.models.decoding.language_model import CharacterModel
from glyphline.models.decoding.lexicon import Lexicon
from glyphline.models.errors import OptionsError
from glyphline.models.manifest import DecoderDefaults

__all__ = [
    "DEFAULT_LANGUAGE_MODEL_WEIGHT",
    "GUIDED_BEAM_WIDTH",
    "MAX_BEAM_WIDTH",
    "MAX_LANGUAGE_MODEL_WEIGHT",
    "MAX_LENGTH_BONUS",
    "MAX_LENGTH_PENALTY",
    "DecodingOptions",
    "ResolvedOptions",
    "allowed_symbols",
]

MAX_BEAM_WIDTH = 256  # bounds what one request can cost
MAX_LENGTH_PENALTY = 10.0
MAX_LANGUAGE_MODEL_WEIGHT = 10.0
MAX_LENGTH_BONUS = 10.0
DEFAULT_LANGUAGE_MODEL_WEIGHT = 0.3
GUIDED_BEAM_WIDTH = 20  # where no decoder is named: a lexicon's right word is often far down the beam at first


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """What a caller asks of a decoder. The defaults leave everything to the bundle.

    Attributes:
        decoder: Which search; None takes the bundle's, together with the bundle's beam width.
        beam_width: Hypotheses that a beam search named by `decoder` keeps. 1 is the greedy search.
        max_alternatives: Most alternatives in a reading. Greedy search gives one whatever is asked.
        length_penalty: Exponent α in the attention head's score / lengthᵅ; None takes the bundle's. CTC has no use
            for it: its scores need no correction for length.
        max_output_length: Longest text, in symbols. The bundle's own maximum holds in any case.
        allowed_characters: Only symbols made of these characters are read; None allows the whole alphabet. Characters
            that the alphabet lacks are ignored, as long as one remains that it has.
        token_details: Whether alternatives list their symbols with confidence and place.
        lexicon: Only its words are read; None allows any text. A name stands for a lexicon that a server holds. It
            takes the place of `allowed_characters`.
        several_words: With a lexicon: whether a text may be several of its words, with single spaces between. Entries
            of the lexicon are then split at their spaces. Otherwise the whole text is one entry.
        language_model: How likely texts are in themselves; None leaves that to the network. A name stands for a model
            that a server holds.
        language_model_weight: What the language model counts for, beside the network's 1.
        length_bonus: What every symbol adds to the score of a text, if there is a lexicon or a language model. A
            language model prefers short texts; a bonus makes up for that.

    A lexicon and a language model need the beam search: with either, `decoder=None` means one of width 20 at least, and
    `greedy` is refused. A bundle may have a language model of its own, which counts where the decoder is left to the
    bundle and there is neither a lexicon nor another language model.
    """

    decoder: Literal["greedy", "beam"] | None = None
    beam_width: int = 10
    max_alternatives: int = 1
    length_penalty: float | None = None
    max_output_length: int | None = None
    allowed_characters: str | None = None
    token_details: bool = False
    lexicon: Lexicon | str | None = None
    several_words: bool = False
    language_model: CharacterModel | str | None = None
    language_model_weight: float = DEFAULT_LANGUAGE_MODEL_WEIGHT
    length_bonus: float = 0.0

    @property
    def guided(self) -> bool:
        """Whether there is a lexicon or a language model."""
        return self.lexicon is not None or self.language_model is not None

    def validate(self, alphabet: Alphabet | None = None) -> None:
        """Checks what can be checked without a bundle, and the allowed characters against an alphabet if it is given.

        Args:
            alphabet: Of the model that will read.

        Raises:
            OptionsError: If a value cannot be honoured; its `field` names the option.
        """
        if self.decoder not in (None, "greedy", "beam"):
            raise OptionsError("decoder", f"must be greedy or beam, not {self.decoder!r}")
        _check_range("beam_width", self.beam_width, MAX_BEAM_WIDTH)
        _check_range("max_alternatives", self.max_alternatives, MAX_BEAM_WIDTH)
        if self.decoder == "beam":
            _check_alternatives(self.max_alternatives, self.beam_width)
        # Written so that NaN fails.
        if self.length_penalty is not None and not 0.0 <= self.length_penalty <= MAX_LENGTH_PENALTY:
            raise OptionsError("length_penalty", f"must be from 0 to {MAX_LENGTH_PENALTY:g}, not {self.length_penalty}")
        if self.max_output_length is not None and self.max_output_length < 1:
            raise OptionsError("max_output_length", f"must be at least 1, not {self.max_output_length}")
        if self.allowed_characters == "":
            raise OptionsError("allowed_characters", "must hold at least one character")
        if self.allowed_characters is not None and alphabet is not None:
            allowed_symbols(self.allowed_characters, alphabet)
        self._check_guide()
        if alphabet is not None:
            self._check_fit(alphabet)

    def leaves_guide_to(self, defaults: DecoderDefaults) -> bool:
        """Whether the bundle's own language model counts.

        Args:
            defaults: The bundle's decoder.
        """
        return defaults.language_model is not None and self.decoder is None and not self.guided

    def resolve(
        self,
        alphabet: Alphabet,
        defaults: DecoderDefaults,
        max_output_length: int,
        language_model: CharacterModel | None = None,
    ) -> "ResolvedOptions":
        """Completes the options by what the bundle says.

        Args:
            alphabet: The bundle's alphabet.
            defaults: The bundle's decoder.
            max_output_length: The bundle's maximum.
            language_model: The bundle's own, if it has one; without it only costs can be told, and nothing is read.

        Returns:
            Options without gaps.

        Raises:
            OptionsError: If a value cannot be honoured; its `field` names the option.
        """
        self.validate()
        width = self.width(defaults)
        if width > 1:
            _check_alternatives(self.max_alternatives, width)
        return ResolvedOptions(
            beam_width=width,
            max_alternatives=min(self.max_alternatives, width),
            length_penalty=defaults.length_penalty if self.length_penalty is None else self.length_penalty,
            max_output_length=min(self.max_output_length or max_output_length, max_output_length),
            allowed=None if self.allowed_characters is None else allowed_symbols(self.allowed_characters, alphabet),
            token_details=self.token_details,
            guide=self._own_guide(alphabet, defaults, language_model)
            if self.leaves_guide_to(defaults)
            else self._guide(alphabet),
        )

    def width(self, defaults: DecoderDefaults) -> int:
        """Returns the beam width that the options come to, 1 for greedy search.

        Args:
            defaults: The bundle's decoder.
        """
        if self.decoder == "beam":
            return self.beam_width
        if self.guided:
            return max(GUIDED_BEAM_WIDTH, defaults.beam_width if defaults.name == "beam" else 1)
        return 1 if (self.decoder or defaults.name) == "greedy" else defaults.beam_width

    def _check_guide(self) -> None:
        """Checks what concerns lexicon and language model."""
        for field, value in (("lexicon", self.lexicon), ("language_model", self.language_model)):
            if value == "":
                raise OptionsError(field, "must not be an empty name")
        if self.guided and self.decoder == "greedy":
            field = "lexicon" if self.lexicon is not None else "language_model"
            raise OptionsError(field, "needs the beam search: the greedy decoder follows one text only")
        if self.lexicon is not None and self.allowed_characters is not None:
            raise OptionsError("lexicon", "says already what may be read: leave out the allowed characters")
        if self.several_words and self.lexicon is None:
            raise OptionsError("several_words", "needs a lexicon")
        # Written so that NaN fails.
        if not 0.0 <= self.language_model_weight <= MAX_LANGUAGE_MODEL_WEIGHT:
            raise OptionsError(
                "language_model_weight",
                f"must be from 0 to {MAX_LANGUAGE_MODEL_WEIGHT:g}, not {self.language_model_weight}",
            )
        if not -MAX_LENGTH_BONUS <= self.length_bonus <= MAX_LENGTH_BONUS:
            raise OptionsError(
                "length_bonus", f"must be from {-MAX_LENGTH_BONUS:g} to {MAX_LENGTH_BONUS:g}, not {self.length_bonus}"
            )
        if self.length_bonus and not self.guided:
            raise OptionsError("length_bonus", "needs a lexicon or a language model")

    def _check_fit(self, alphabet: Alphabet) -> None:
        """Checks that lexicon and language model have something to do with an alphabet, without binding them."""
        if isinstance(self.lexicon, Lexicon) and not self.lexicon.fits(alphabet):
            self.lexicon.bind(alphabet)  # which knows what to say
        if self.several_words and " " not in alphabet.symbols:
            raise OptionsError("several_words", "the model's alphabet has no space to put between words")
        if isinstance(self.language_model, CharacterModel) and not self.language_model.fits(alphabet):
            self.language_model.bind(alphabet)

    @staticmethod
    def _own_guide(alphabet: Alphabet, defaults: DecoderDefaults, model: CharacterModel | None) -> Guide | None:
        if model is None:
            return None
        return make_guide(alphabet, None, model, False, defaults.language_model_weight, defaults.length_bonus)

    def _guide(self, alphabet: Alphabet) -> Guide | None:
        if not self.guided:
            return None
        for field, value in (("lexicon", self.lexicon), ("language_model", self.language_model)):
            if isinstance(value, str):
                raise OptionsError(field, f"{value!r} is a name, which only a server can know")
        assert not isinstance(self.lexicon, str)
        assert not isinstance(self.language_model, str)
        return make_guide(
            alphabet,
            self.lexicon,
            self.language_model,
            self.several_words,
            self.language_model_weight,
            self.length_bonus,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ResolvedOptions:
    """Options as decoders take them.

    Attributes:
        beam_width: Hypotheses kept; 1 is the greedy search.
        max_alternatives: Most alternatives, at most the beam width.
        length_penalty: Exponent α in the attention head's score / lengthᵅ.
        max_output_length: Longest text, in symbols.
        allowed: bool (symbols), class 0 (blank or end) always True; None allows all.
        token_details: Whether alternatives list their symbols.
        guide: What steers the beam search beside the network; None for nothing.
    """

    beam_width: int = 1
    max_alternatives: int = 1
    length_penalty: float = 1.0
    max_output_length: int = 1_000_000
    allowed: NDArray[np.bool_] | None = None
    token_details: bool = False
    guide: Guide | None = None


def allowed_symbols(characters: str, alphabet: Alphabet) -> NDArray[np.bool_]:
    """Finds the network classes that a reading restricted to some characters may use.

    Args:
        characters: The characters, in any order.
        alphabet: The bundle's alphabet.

    Returns:
        bool (symbols): True for every symbol made of these characters only, and for class 0, the blank or the end.

    Raises:
        OptionsError: If no symbol is made of them; it names the characters that the alphabet lacks.
    """
    # Both forms: a symbol may be one composed character, or a base and its mark as two.
    listed = set(characters) | set(unicodedata.normalize("NFC", characters))
    allowed = np.array([True, *(listed.issuperset(symbol) for symbol in alphabet.symbols)])
    if not allowed[1:].any():
        known = set("".join(alphabet.symbols))
        unknown = "".join(sorted(listed - known))
        detail = f"the model's alphabet lacks {unknown!r}" if unknown else "no symbol is made of these characters alone"
        raise OptionsError("allowed_characters", f"nothing is left to read: {detail}")
    return allowed


def _check_range(field: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise OptionsError(field, f"must be from 1 to {most}, not {value}")


def _check_alternatives(alternatives: int, width: int) -> None:
    if alternatives > width:
        raise OptionsError("max_alternatives", f"{alternatives} is more than the beam width of {width}")
