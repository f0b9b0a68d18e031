"""Options are checked before they cost anything, and completed by the bundle."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.models.alphabet import Alphabet
from glyphline.models.decoding.lexicon import Lexicon
from glyphline.models.decoding.options import GUIDED_BEAM_WIDTH, DecodingOptions, allowed_symbols
from glyphline.models.errors import OptionsError
from glyphline.models.manifest import DecoderDefaults

DIGITS = Alphabet("0123456789.")
GREEDY = DecoderDefaults(name="greedy", beam_width=7, length_penalty=0.5)
BEAM = DecoderDefaults(name="beam", beam_width=7, length_penalty=0.5)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (DecodingOptions(decoder="sampling"), "decoder"),  # type: ignore[arg-type]
        (DecodingOptions(decoder="beam", beam_width=0), "beam_width"),
        (DecodingOptions(decoder="beam", beam_width=100_000), "beam_width"),
        (DecodingOptions(max_alternatives=0), "max_alternatives"),
        (DecodingOptions(decoder="beam", beam_width=3, max_alternatives=4), "max_alternatives"),
        (DecodingOptions(length_penalty=-0.1), "length_penalty"),
        (DecodingOptions(length_penalty=float("nan")), "length_penalty"),
        (DecodingOptions(length_penalty=float("inf")), "length_penalty"),
        (DecodingOptions(max_output_length=0), "max_output_length"),
        (DecodingOptions(allowed_characters=""), "allowed_characters"),
        (DecodingOptions(allowed_characters="abc"), "allowed_characters"),
    ],
)
def test_a_bad_value_is_an_error_that_names_its_field(options: DecodingOptions, field: str) -> None:
    with pytest.raises(OptionsError) as caught:
        options.validate(DIGITS)
    assert caught.value.field == field
    with pytest.raises(OptionsError) as caught:
        options.resolve(DIGITS, GREEDY, 20)
    assert caught.value.field == field


def test_the_defaults_are_valid_and_leave_the_choice_to_the_bundle() -> None:
    DecodingOptions().validate(DIGITS)
    greedy = DecodingOptions().resolve(DIGITS, GREEDY, 20)
    assert (greedy.beam_width, greedy.length_penalty, greedy.max_output_length) == (1, 0.5, 20)
    assert greedy.allowed is None
    assert DecodingOptions().resolve(DIGITS, BEAM, 20).beam_width == 7


def test_what_the_caller_says_goes_before_what_the_bundle_says() -> None:
    options = DecodingOptions(decoder="beam", beam_width=4, max_alternatives=3, length_penalty=0.0, max_output_length=8)
    resolved = options.resolve(DIGITS, GREEDY, 20)
    assert (resolved.beam_width, resolved.max_alternatives) == (4, 3)
    assert (resolved.length_penalty, resolved.max_output_length) == (0.0, 8)
    assert replace(options, decoder="greedy").resolve(DIGITS, BEAM, 20).beam_width == 1


def test_the_bundle_s_maximum_length_is_the_last_word() -> None:
    assert DecodingOptions(max_output_length=100).resolve(DIGITS, GREEDY, 20).max_output_length == 20


def test_greedy_gives_one_alternative_and_a_beam_no_more_than_its_width() -> None:
    options = DecodingOptions(max_alternatives=9)
    assert options.resolve(DIGITS, GREEDY, 20).max_alternatives == 1
    with pytest.raises(OptionsError, match="beam width of 7"):
        options.resolve(DIGITS, BEAM, 20)


def test_class_zero_is_always_allowed() -> None:
    assert allowed_symbols("13", DIGITS).nonzero()[0].tolist() == [0, 2, 4]


def test_unknown_characters_are_ignored_unless_they_are_all_there_is() -> None:
    assert allowed_symbols("1€$", DIGITS).nonzero()[0].tolist() == [0, 2]
    with pytest.raises(OptionsError, match=r"lacks '\$€'"):
        allowed_symbols("€$", DIGITS)


def test_a_symbol_of_several_characters_needs_them_all() -> None:
    alphabet = Alphabet(["a", "th", "é"])
    assert allowed_symbols("at", alphabet).nonzero()[0].tolist() == [0, 1]
    assert allowed_symbols("hat", alphabet).nonzero()[0].tolist() == [0, 1, 2]
    assert allowed_symbols("e\u0301", alphabet).nonzero()[0].tolist() == [0, 3]
    with pytest.raises(OptionsError, match="no symbol is made of these characters alone"):
        allowed_symbols("t", alphabet)


@given(st.text(alphabet="0123456789.abc", min_size=1))
def test_allowed_symbols_are_exactly_those_asked_for(characters: str) -> None:
    try:
        allowed = allowed_symbols(characters, DIGITS)
    except OptionsError:
        assert not set(characters) & set(DIGITS.symbols)
    else:
        assert {symbol for symbol, ok in zip(DIGITS.symbols, allowed[1:], strict=True) if ok} == (
            set(characters) & set(DIGITS.symbols)
        )


WORDS = Lexicon(["12", "3.5"])


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (DecodingOptions(decoder="greedy", lexicon=WORDS), "lexicon"),
        (DecodingOptions(decoder="greedy", language_model="letters"), "language_model"),
        (DecodingOptions(lexicon=WORDS, allowed_characters="12"), "lexicon"),
        (DecodingOptions(lexicon=Lexicon(["abc"])), "lexicon"),
        (DecodingOptions(lexicon=""), "lexicon"),
        (DecodingOptions(language_model=""), "language_model"),
        (DecodingOptions(lexicon=WORDS, several_words=True), "several_words"),  # there is no space in the alphabet
        (DecodingOptions(several_words=True), "several_words"),
        (DecodingOptions(lexicon=WORDS, language_model_weight=-0.1), "language_model_weight"),
        (DecodingOptions(lexicon=WORDS, language_model_weight=float("nan")), "language_model_weight"),
        (DecodingOptions(lexicon=WORDS, length_bonus=float("nan")), "length_bonus"),
        (DecodingOptions(lexicon=WORDS, length_bonus=-11.0), "length_bonus"),
        (DecodingOptions(length_bonus=1.0), "length_bonus"),
    ],
)
def test_a_bad_lexicon_or_language_model_is_an_error_that_names_its_field(options: DecodingOptions, field: str) -> None:
    for check in (lambda: options.validate(DIGITS), lambda: options.resolve(DIGITS, GREEDY, 20)):
        with pytest.raises(OptionsError) as caught:
            check()
        assert caught.value.field == field


def test_a_lexicon_means_a_beam_that_is_wide_enough() -> None:
    options = DecodingOptions(lexicon=WORDS, max_alternatives=3)
    for defaults in (GREEDY, BEAM):
        resolved = options.resolve(DIGITS, defaults, 20)
        assert (resolved.beam_width, resolved.max_alternatives) == (GUIDED_BEAM_WIDTH, 3)
        assert resolved.guide is not None
    assert options.resolve(DIGITS, beam_of(50), 20).beam_width == 50
    assert replace(options, decoder="beam", beam_width=3).resolve(DIGITS, BEAM, 20).beam_width == 3


def beam_of(width: int) -> DecoderDefaults:
    return DecoderDefaults(name="beam", beam_width=width, length_penalty=0.0)


def test_options_with_a_lexicon_can_be_compared_and_kept_in_a_table() -> None:
    one, other = DecodingOptions(lexicon=WORDS), DecodingOptions(lexicon=Lexicon(["3.5", "12"]))
    assert one == other
    assert len({one, other, DecodingOptions(lexicon="12"), DecodingOptions()}) == 3
