"""Which tensors there are: every description, check and answer goes by this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = [
    "ALTERNATIVES",
    "CONFIDENCE",
    "ERROR",
    "IMAGE",
    "INPUTS",
    "OUTPUTS",
    "PLATFORM",
    "REFERENCE_TEXT",
    "STATUS",
    "TEXT",
    "Datatype",
    "TensorKind",
]

Datatype: TypeAlias = Literal["BYTES", "FP32", "INT32"]

PLATFORM = "glyphline_onnx"


@dataclass(frozen=True, slots=True)
class TensorKind:
    """A tensor that every model has.

    Attributes:
        name: Its name.
        datatype: Type of its elements.
        shape: Its shape; -1 is any length, and the first length is the number of images.
        optional: Whether it may be left out.
    """

    name: str
    datatype: Datatype
    shape: tuple[int, ...] = (-1,)
    optional: bool = False


IMAGE = TensorKind("image", "BYTES")
REFERENCE_TEXT = TensorKind("reference_text", "BYTES", optional=True)
INPUTS = (IMAGE, REFERENCE_TEXT)

TEXT = TensorKind("text", "BYTES")
CONFIDENCE = TensorKind("confidence", "FP32")
ALTERNATIVES = TensorKind("alternatives", "BYTES", (-1, -1), optional=True)
STATUS = TensorKind("status", "INT32")
ERROR = TensorKind("error", "BYTES")
OUTPUTS = (TEXT, CONFIDENCE, ALTERNATIVES, STATUS, ERROR)
