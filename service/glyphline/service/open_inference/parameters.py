"""The parameters of a request: which there are, of which type, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from glyphline.models.decoding.options import DecodingOptions
from glyphline.open_inference.v2 import open_inference_pb2 as api
from glyphline.service.conversion import MAX_ALLOWED_CHARACTERS
from glyphline.service.errors import RequestError

__all__ = ["PARAMETERS", "Parameters", "read_parameters"]

_Kind = Literal["a text", "a whole number", "a number", "true or false"]

PARAMETERS: Mapping[str, _Kind] = {
    "decoder": "a text",
    "beam_width": "a whole number",
    "length_penalty": "a number",
    "max_alternatives": "a whole number",
    "max_output_length": "a whole number",
    "allowed_characters": "a text",
    "lexicon": "a text",
    "several_words": "true or false",
    "language_model": "a text",
    "language_model_weight": "a number",
    "length_bonus": "a number",
    "priority": "a whole number",
    "timeout": "a whole number",
}
"""The parameters that there are, with what each must be."""

# The fields of a message's value that each kind may stand in.
_WHOLE = ("int64_param", "uint64_param")
_FIELDS: Mapping[_Kind, tuple[str, ...]] = {
    "a text": ("string_param",),
    "a whole number": _WHOLE,
    "a number": (*_WHOLE, "double_param"),
    "true or false": ("bool_param",),
}
_PRIORITIES = {0: 0, 1: 1, 2: 0, 3: -1}  # as in Triton 1 is the most urgent, and 0 the usual
_SHOWN = 100  # characters of a caller's word that a message repeats


@dataclass(frozen=True, slots=True)
class Parameters:
    """What the parameters of a request come to.

    Attributes:
        options: How to decode. A beam width of 0 is the model's own.
        priority: The higher goes first.
        timeout: Seconds that the images may take; None for as long as the call may.
    """

    options: DecodingOptions
    priority: int
    timeout: float | None


def read_parameters(given: Mapping[str, api.InferParameter]) -> Parameters:
    """Converts the parameters of a request.

    Raises:
        RequestError: If there is one that Glyphline does not know, or that has a value which it cannot have.
    """
    values = {name: _value(name, parameter) for name, parameter in sorted(given.items())}
    timeout = values.get("timeout", 0)
    if timeout < 0:
        raise RequestError("parameters.timeout", f"must be microseconds, or 0 for none, not {timeout}")
    priority = values.get("priority", 0)
    if priority not in _PRIORITIES:
        raise RequestError(
            "parameters.priority", f"must be 1 (urgent), 2 (usual), 3 (can wait) or 0 (usual), not {priority}"
        )
    return Parameters(_options(values), _PRIORITIES[priority], timeout / 1e6 or None)


def _value(name: str, parameter: api.InferParameter) -> Any:  # noqa: ANN401  # of the kind that `PARAMETERS` says
    """Returns the value of a parameter, which is of the kind that it must be."""
    kind = PARAMETERS.get(name)
    if kind is None:
        raise RequestError("parameters", f"{name[:_SHOWN]!r} is none of {', '.join(PARAMETERS)}")
    field = parameter.WhichOneof("parameter_choice")
    if field not in _FIELDS[kind]:
        raise RequestError(f"parameters.{name}", f"must be {kind}, not {_describe(field)}")
    return getattr(parameter, field)


def _describe(field: str | None) -> str:
    """Names what stands in a field that it must not stand in."""
    if field is None:
        return "empty"
    return next(kind for kind, fields in _FIELDS.items() if field in fields)


def _options(values: Mapping[str, Any]) -> DecodingOptions:
    usual = DecodingOptions()
    for name in ("beam_width", "max_alternatives", "max_output_length"):
        if name in values and values[name] < 1:
            raise RequestError(f"parameters.{name}", f"must be at least 1, not {values[name]}")
    if "language_model_weight" in values and "language_model" not in values:
        raise RequestError("parameters.language_model_weight", "needs a language_model")
    if len(values.get("allowed_characters", "")) > MAX_ALLOWED_CHARACTERS:
        raise RequestError("parameters.allowed_characters", f"must have at most {MAX_ALLOWED_CHARACTERS} characters")
    decoder = _decoder(values)
    return DecodingOptions(
        decoder=decoder,
        beam_width=values.get("beam_width", 0 if decoder == "beam" else usual.beam_width),
        max_alternatives=values.get("max_alternatives", usual.max_alternatives),
        length_penalty=values.get("length_penalty"),
        max_output_length=values.get("max_output_length"),
        allowed_characters=values.get("allowed_characters"),
        lexicon=values.get("lexicon"),
        several_words=values.get("several_words", usual.several_words),
        language_model=values.get("language_model"),
        language_model_weight=values.get("language_model_weight", usual.language_model_weight),
        length_bonus=values.get("length_bonus", usual.length_bonus),
    )


def _decoder(values: Mapping[str, Any]) -> Literal["greedy", "beam"] | None:
    """Returns the search: what belongs to a beam asks for one."""
    of_beam = next((name for name in ("beam_width", "length_penalty") if name in values), None)
    decoder = values.get("decoder", None if of_beam is None else "beam")
    if decoder not in (None, "greedy", "beam"):
        raise RequestError("parameters.decoder", f"must be 'greedy' or 'beam', not {decoder[:_SHOWN]!r}")
    if decoder == "greedy" and of_beam is not None:
        raise RequestError(f"parameters.{of_beam}", "needs the decoder 'beam'")
    return cast('Literal["greedy", "beam"] | None', decoder)
