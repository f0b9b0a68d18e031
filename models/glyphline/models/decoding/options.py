"""How to decode: what a caller may ask for, checked and completed by what the bundle says."""

import unicodedata
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from glyphline.models.alphabet import Alphabet
from glyphline.models.bundle import DecoderDefaults
from glyphline.models.errors import OptionsError

__all__ = ["MAX_BEAM_WIDTH", "MAX_LENGTH_PENALTY", "DecodingOptions", "ResolvedOptions", "allowed_symbols"]

MAX_BEAM_WIDTH = 256  # bounds what one request can cost
MAX_LENGTH_PENALTY = 10.0


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
    """

    decoder: Literal["greedy", "beam"] | None = None
    beam_width: int = 10
    max_alternatives: int = 1
    length_penalty: float | None = None
    max_output_length: int | None = None
    allowed_characters: str | None = None
    token_details: bool = False

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

    def resolve(self, alphabet: Alphabet, defaults: DecoderDefaults, max_output_length: int) -> "ResolvedOptions":
        """Completes the options by what the bundle says.

        Args:
            alphabet: The bundle's alphabet.
            defaults: The bundle's decoder.
            max_output_length: The bundle's maximum.

        Returns:
            Options without gaps.

        Raises:
            OptionsError: If a value cannot be honoured; its `field` names the option.
        """
        self.validate()
        decoder = self.decoder or defaults.name
        width = self.beam_width if self.decoder == "beam" else defaults.beam_width
        if decoder == "greedy":
            width = 1
        else:
            _check_alternatives(self.max_alternatives, width)
        return ResolvedOptions(
            beam_width=width,
            max_alternatives=min(self.max_alternatives, width),
            length_penalty=defaults.length_penalty if self.length_penalty is None else self.length_penalty,
            max_output_length=min(self.max_output_length or max_output_length, max_output_length),
            allowed=None if self.allowed_characters is None else allowed_symbols(self.allowed_characters, alphabet),
            token_details=self.token_details,
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
    """

    beam_width: int = 1
    max_alternatives: int = 1
    length_penalty: float = 1.0
    max_output_length: int = 1_000_000
    allowed: NDArray[np.bool_] | None = None
    token_details: bool = False


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
