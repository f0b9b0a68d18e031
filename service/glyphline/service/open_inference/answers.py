"""Makes the answer to a request of what became of its images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from glyphline.models.errors import GlyphlineError, ImageError
from glyphline.open_inference.v2 import open_inference_pb2 as api
from glyphline.service.errors import RequestError
from glyphline.service.open_inference.interface import (
    ALTERNATIVES,
    CONFIDENCE,
    ERROR,
    IMAGE,
    STATUS,
    TEXT,
    TensorKind,
)
from glyphline.service.open_inference.requests import Asked
from glyphline.service.open_inference.tensors import pack_bytes, pack_floats, pack_integers
from glyphline.service.pipeline import Answer
from glyphline.service.status import code_of, status_of

__all__ = ["answer_message"]

Outcomes: TypeAlias = Sequence[Answer | GlyphlineError]


def answer_message(asked: Asked, outcomes: Outcomes) -> api.ModelInferResponse:
    """Makes the answer, without the names of request and model.

    Args:
        asked: What was asked.
        outcomes: What became of each image.

    Raises:
        GlyphlineError: If an image failed and its caller would not hear of it, as neither `status` nor `error` is
            among the outputs that are wanted.
    """
    if STATUS not in asked.outputs and ERROR not in asked.outputs:
        _raise_first(outcomes)
    response = api.ModelInferResponse()
    for kind in asked.outputs:
        tensor = response.outputs.add(name=kind.name, datatype=kind.datatype, shape=_shape(kind, asked))
        elements = _elements(kind, asked, outcomes)
        if asked.raw:
            response.raw_output_contents.append(_RAW[kind.datatype](elements))
        else:
            getattr(tensor.contents, _FIELDS[kind.datatype]).extend(elements)
    return response


def _raise_first(outcomes: Outcomes) -> None:
    for index, outcome in enumerate(outcomes):
        if isinstance(outcome, ImageError):
            raise RequestError(f"{IMAGE.name}[{index}]", str(outcome)) from outcome
        if isinstance(outcome, GlyphlineError):
            raise outcome


def _shape(kind: TensorKind, asked: Asked) -> list[int]:
    count = len(asked.images)
    return [count, asked.parameters.options.max_alternatives] if kind is ALTERNATIVES else [count]


def _elements(kind: TensorKind, asked: Asked, outcomes: Outcomes) -> list[object]:
    if kind is ALTERNATIVES:
        width = asked.parameters.options.max_alternatives
        return [text for outcome in outcomes for text in _alternatives(outcome, width)]
    of_answer, of_error = _ELEMENTS[kind]
    return [of_answer(outcome) if isinstance(outcome, Answer) else of_error(outcome) for outcome in outcomes]


def _alternatives(outcome: Answer | GlyphlineError, width: int) -> list[bytes]:
    """Returns as many texts as were asked for; where there are fewer, empty ones follow."""
    found = outcome.reading.alternatives[:width] if isinstance(outcome, Answer) else ()
    return [alternative.text.encode() for alternative in found] + [b""] * (width - len(found))


# What stands for an image that was read, and for one that was not.
_ELEMENTS: Mapping[TensorKind, tuple[Callable[[Answer], object], Callable[[GlyphlineError], object]]] = {
    TEXT: (lambda answer: answer.reading.text.encode(), lambda _: b""),
    CONFIDENCE: (lambda answer: answer.reading.confidence, lambda _: 0.0),
    STATUS: (lambda _: 0, lambda error: code_of(error).value[0]),
    ERROR: (lambda _: b"", lambda error: status_of(error).message.encode()),
}
_RAW: Mapping[str, Callable[..., bytes]] = {"BYTES": pack_bytes, "FP32": pack_floats, "INT32": pack_integers}
_FIELDS = {"BYTES": "bytes_contents", "FP32": "fp32_contents", "INT32": "int_contents"}
