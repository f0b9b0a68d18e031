"""Parameters mean what they say, and what is none is refused by its name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glyphline.models.decoding.options import DecodingOptions
from glyphline.open_inference.v2 import open_inference_pb2 as api
from glyphline.service.errors import RequestError
from glyphline.service.open_inference.parameters import PARAMETERS, Parameters, read_parameters

USUAL = DecodingOptions()
BEAM = replace(USUAL, decoder="beam", beam_width=0)  # as wide as the model's own


def of(**values: object) -> dict[str, api.InferParameter]:
    """Writes parameters as tritonclient does."""
    parameters = {}
    for name, value in values.items():
        match value:
            case bool():
                parameters[name] = api.InferParameter(bool_param=value)
            case int():
                parameters[name] = api.InferParameter(int64_param=value)
            case float():
                parameters[name] = api.InferParameter(double_param=value)
            case _:
                parameters[name] = api.InferParameter(string_param=str(value))
    return parameters


def test_without_any_the_model_decides() -> None:
    assert read_parameters({}) == Parameters(USUAL, 0, None)


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"decoder": "greedy"}, replace(USUAL, decoder="greedy")),
        ({"decoder": "beam"}, BEAM),
        ({"decoder": "beam", "beam_width": 5}, replace(BEAM, beam_width=5)),
        ({"beam_width": 5}, replace(BEAM, beam_width=5)),
        ({"length_penalty": 0.5}, replace(BEAM, length_penalty=0.5)),
        ({"length_penalty": 1}, replace(BEAM, length_penalty=1)),
        ({"max_alternatives": 3}, replace(USUAL, max_alternatives=3)),
        ({"max_output_length": 4}, replace(USUAL, max_output_length=4)),
        ({"allowed_characters": "01"}, replace(USUAL, allowed_characters="01")),
        ({"lexicon": "codes", "several_words": True}, replace(USUAL, lexicon="codes", several_words=True)),
        (
            {"language_model": "one", "language_model_weight": 0.7, "length_bonus": -1.5},
            replace(USUAL, language_model="one", language_model_weight=0.7, length_bonus=-1.5),
        ),
    ],
)
def test_how_to_decode(given: dict[str, object], options: DecodingOptions) -> None:
    assert read_parameters(of(**given)).options == options


def test_one_is_the_most_urgent_as_in_triton() -> None:
    urgent = [read_parameters({"priority": api.InferParameter(uint64_param=value)}).priority for value in (1, 2, 3)]
    assert urgent == sorted(urgent, reverse=True)
    assert len(set(urgent)) == 3
    assert read_parameters(of(priority=0)).priority == read_parameters({}).priority == urgent[1]


def test_the_timeout_is_in_microseconds() -> None:
    assert read_parameters(of(timeout=1_500_000)).timeout == 1.5
    assert read_parameters(of(timeout=0)).timeout is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sequence_id": 7}, "parameters: 'sequence_id' is none of decoder, beam_width, "),
        ({"x" * 500: 1}, "parameters: 'x{100}' is none of"),
        ({"decoder": "best"}, "parameters.decoder: must be 'greedy' or 'beam', not 'best'"),
        ({"decoder": 1}, "parameters.decoder: must be a text, not a whole number"),
        ({"decoder": "greedy", "beam_width": 3}, "parameters.beam_width: needs the decoder 'beam'"),
        ({"decoder": "greedy", "length_penalty": 0.1}, "parameters.length_penalty: needs the decoder 'beam'"),
        ({"beam_width": "3"}, "parameters.beam_width: must be a whole number, not a text"),
        ({"beam_width": 3.0}, "parameters.beam_width: must be a whole number, not a number"),
        ({"beam_width": True}, "parameters.beam_width: must be a whole number, not true or false"),
        ({"beam_width": 0}, "parameters.beam_width: must be at least 1, not 0"),
        ({"max_alternatives": -1}, "parameters.max_alternatives: must be at least 1, not -1"),
        ({"max_output_length": 0}, "parameters.max_output_length: must be at least 1, not 0"),
        ({"allowed_characters": "1" * 5000}, "parameters.allowed_characters: must have at most 4096"),
        ({"language_model_weight": 0.5}, "parameters.language_model_weight: needs a language_model"),
        ({"several_words": 1}, "parameters.several_words: must be true or false, not a whole number"),
        ({"priority": 4}, "parameters.priority: must be 1"),
        ({"timeout": -1}, "parameters.timeout: must be microseconds"),
        ({"timeout": 0.5}, "parameters.timeout: must be a whole number, not a number"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_its_name(given: dict[str, object], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        read_parameters(of(**given))


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_without_a_value_is_none(name: str) -> None:
    with pytest.raises(RequestError, match=f"parameters.{name}: must be .*, not empty"):
        read_parameters({name: api.InferParameter()})
