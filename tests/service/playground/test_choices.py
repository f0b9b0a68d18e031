import pytest

from glyphline.models.errors import OptionsError
from glyphline.models.manifest import DecoderDefaults
from glyphline.service.playground.choices import BEAM, GREEDY, Choices, Model, describe_search, model_for

OWN_GREEDY = DecoderDefaults()
OWN_GUIDED = DecoderDefaults(name="beam", beam_width=10, language_model="letters.arpa")


@pytest.mark.parametrize(
    ("choices", "defaults", "search", "alternatives"),
    [
        (Choices(alternatives=1), OWN_GREEDY, "greedy", 1),
        (Choices(alternatives=3), OWN_GREEDY, "beam search of 10", 3),
        (Choices(alternatives=3), OWN_GUIDED, "beam search of 10 with its language model", 3),
        (Choices(alternatives=12), OWN_GUIDED, "beam search of 12", 12),
        (Choices(GREEDY, alternatives=3), OWN_GUIDED, "greedy", 1),
        (Choices(BEAM, 4, 3), OWN_GUIDED, "beam search of 4", 3),
        (Choices(BEAM, 1, 1), OWN_GREEDY, "greedy", 1),
    ],
)
def test_the_search_gives_what_is_asked_for(
    choices: Choices, defaults: DecoderDefaults, search: str, alternatives: int
) -> None:
    options = choices.options(defaults)
    assert describe_search(options, defaults) == search
    assert options.max_alternatives == alternatives
    assert options.token_details


def test_all_characters_are_allowed_unless_some_are_named() -> None:
    assert Choices().options(OWN_GREEDY).allowed_characters is None
    assert Choices(allowed="01").options(OWN_GREEDY).allowed_characters == "01"


def test_more_alternatives_than_the_beam_holds_are_refused() -> None:
    with pytest.raises(OptionsError, match="3 is more than the beam width of 2") as caught:
        Choices(BEAM, 2, 3).options(OWN_GREEDY)
    assert caught.value.field == "max_alternatives"


def test_a_picture_is_read_by_a_model_of_its_task() -> None:
    digits, other_digits, words = (
        Model("digits", 3, "digits", OWN_GREEDY),
        Model("digits-ctc", 3, "digits", OWN_GREEDY),
        Model("words", 2, "words", OWN_GUIDED),
    )
    models = [digits, other_digits, words]
    assert model_for("words", digits, models) is words
    assert model_for("digits", words, models) is digits
    assert model_for("digits", other_digits, models) is other_digits
    assert model_for("music", words, models) is words
    assert model_for(None, words, models) is words
