"""The row a job writes for one image: what was read, or why it could not be."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from glyphline.models.decoding import Alternative, Reading
from glyphline.models.errors import GlyphlineError

_DECIMALS = 6
ESCAPED_BYTE = re.compile(r"\\x([89a-f][0-9a-f])")  # a byte that is no part of a character


@dataclass(frozen=True, slots=True)
class RowError:
    """Why an image has no text.

    Attributes:
        code: Stable name for programs, such as `undecodable_image`.
        message: Sentence for people.
    """

    code: str
    message: str

    @classmethod
    def of(cls, error: GlyphlineError | OSError) -> RowError:
        """Names an error: `EmptyImageError` becomes `empty_image`, a missing file `file_not_found`."""
        if isinstance(error, OSError):
            return cls(_file_code(error), error.strerror or str(error))
        name = type(error).__name__.removesuffix("Error")
        return cls(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower(), str(error))


def _file_code(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "file_not_found"
    if isinstance(error, PermissionError):
        return "permission_denied"
    return "unreadable_file"


Outcome = Reading | RowError


@dataclass(frozen=True, slots=True)
class Row:
    """One image of a job.

    Attributes:
        source: Path as it was given or found.
        outcome: The reading, or the error.
        model: Name of the bundle that read it.
        version: Version of that bundle.
        reference: The true text, where it is known.
    """

    source: str
    outcome: Outcome
    model: str
    version: int
    reference: str | None = None

    def as_json(self, *, alternatives: bool = False, tokens: bool = False) -> dict[str, Any]:
        """Builds the JSON object of the row.

        `text` is null, never "", where the image could not be read: "" means that there is no writing on it.

        Args:
            alternatives: Whether to list every alternative, best first.
            tokens: Whether to list every character with its confidence and span.
        """
        row: dict[str, Any] = {"source": printable(self.source)}
        if isinstance(self.outcome, RowError):
            error = {"code": self.outcome.code, "message": printable(self.outcome.message)}
            row |= {"text": None, "confidence": None, "truncated": None, "error": error}
        else:
            reading = self.outcome
            row |= {"text": reading.text, "confidence": round(reading.confidence, _DECIMALS)}
            row |= {"truncated": reading.truncated, "error": None}
        row |= {"model": self.model, "version": self.version}
        if self.reference is not None:
            row["reference"] = self.reference
        if isinstance(self.outcome, Reading):
            if tokens:
                row["tokens"] = _tokens(self.outcome.alternatives[0])
            if alternatives:
                row["alternatives"] = [_alternative(each, tokens) for each in self.outcome.alternatives]
        return row


def printable(path: str) -> str:
    r"""Returns a path that UTF-8 can hold: bytes of a file name that are not UTF-8 are written `\xNN`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def unprinted(path: str) -> str:
    """Returns the path that `printable` has written, where no file has the written name itself."""
    if not ESCAPED_BYTE.search(path) or os.path.lexists(path):
        return path
    return ESCAPED_BYTE.sub(lambda match: os.fsdecode(bytes.fromhex(match[1])), path)


def one_cell(text: str) -> str:
    """Returns a text that is one cell of a line: what would end it is written `%09`, `%0A` and `%0D`."""
    return "".join(f"%{ord(each):02X}" if each in "\t\r\n" else each for each in text)


def _alternative(alternative: Alternative, tokens: bool) -> dict[str, Any]:
    values: dict[str, Any] = {
        "text": alternative.text,
        "confidence": round(alternative.confidence, _DECIMALS),
        "log_probability": round(alternative.log_probability, _DECIMALS),
    }
    return values | ({"tokens": _tokens(alternative)} if tokens else {})


def _tokens(alternative: Alternative) -> list[dict[str, Any]]:
    return [
        {
            "text": token.text,
            "confidence": round(token.confidence, _DECIMALS),
            "span": None if token.span is None else [round(edge, 2) for edge in token.span],
        }
        for token in alternative.tokens
    ]
