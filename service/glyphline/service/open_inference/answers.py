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
        content = _CONTENTS[kind](asked, outcomes)
        if asked.raw:
            response.raw_output_contents.append(_RAW[kind.datatype](content))
        else:
            getattr(tensor.contents, _FIELDS[kind.datatype]).extend(content)
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


def _texts(asked: Asked, outcomes: Outcomes) -> list[bytes]:
    del asked
    return [outcome.reading.text.encode() if isinstance(outcome, Answer) else b"" for outcome in outcomes]


def _confidences(asked: Asked, outcomes: Outcomes) -> list[float]:
    del asked
    return [outcome.reading.confidence if isinstance(outcome, Answer) else 0.0 for outcome in outcomes]


def _alternatives(asked: Asked, outcomes: Outcomes) -> list[bytes]:
    """Writes as many texts for each image as were asked for; where there are fewer, empty ones follow."""
    width = asked.parameters.options.max_alternatives
    elements: list[bytes] = []
    for outcome in outcomes:
        found = outcome.reading.alternatives if isinstance(outcome, Answer) else ()
        texts = [alternative.text.encode() for alternative in found[:width]]
        elements += texts + [b""] * (width - len(texts))
    return elements


def _statuses(asked: Asked, outcomes: Outcomes) -> list[int]:
    del asked
    return [0 if isinstance(outcome, Answer) else int(code_of(outcome).value[0]) for outcome in outcomes]


def _errors(asked: Asked, outcomes: Outcomes) -> list[bytes]:
    del asked
    return [b"" if isinstance(outcome, Answer) else status_of(outcome).message.encode() for outcome in outcomes]


_CONTENTS: Mapping[TensorKind, Callable[[Asked, Outcomes], Sequence[object]]] = {
    TEXT: _texts,
    CONFIDENCE: _confidences,
    ALTERNATIVES: _alternatives,
    STATUS: _statuses,
    ERROR: _errors,
}
_RAW: Mapping[str, Callable[..., bytes]] = {"BYTES": pack_bytes, "FP32": pack_floats, "INT32": pack_integers}
_FIELDS = {"BYTES": "bytes_contents", "FP32": "fp32_contents", "INT32": "int_contents"}
