"""From a picture and choices to what the page shows, or what it says instead."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Literal

from glyphline.models.decoding import Reading
from glyphline.models.errors import (
    EmptyImageError,
    GlyphlineError,
    ImageTooLargeError,
    ImageTooWideError,
    OptionsError,
    UndecodableImageError,
)
from glyphline.models.image import GreyImage, ImageLimits, read_image
from glyphline.service.playground.canvas import BlankDrawingError, strip_of
from glyphline.service.playground.choices import Choices, Model, describe_search
from glyphline.service.playground.readers import Reader

__all__ = ["Picture", "Problem", "Shown", "explain", "picture_of", "read_picture"]

Kind = Literal["drawing", "file"]

_FIELDS = {
    "allowed_characters": "Allowed characters",
    "beam_width": "Beam width",
    "max_alternatives": "Alternatives",
}
_ADVICE: dict[type[GlyphlineError], str] = {
    BlankDrawingError: "Draw something, drop or paste a picture, or choose an example.",
    EmptyImageError: "Choose another file.",
    UndecodableImageError: "Choose the whole file of a picture: PNG, JPEG, WebP, BMP, TIFF, GIF or PNM.",
    ImageTooLargeError: "Cut out the line of text, or make the picture smaller.",
    ImageTooWideError: "Cut it into shorter strips, or choose a model that reads long lines, as digits-ctc does.",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """What the page holds.

    Attributes:
        kind: Whether it was drawn on the canvas or is a file of its own.
        content: Bytes of an image file.
        task: Of the models that can read it, if that is known.
    """

    kind: Kind
    content: bytes
    task: str | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """What was read, with all that the page shows of it.

    Attributes:
        image: The strip that was read.
        reading: What it says.
        model: What read it.
        search: How, in words.
        place: Where.
        seconds: How long it took.
    """

    image: GreyImage
    reading: Reading
    model: Model
    search: str
    place: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Problem:
    """Why nothing was read, in plain words, and what to do."""

    message: str


def picture_of(value: object) -> Picture | None:
    """Takes what the page sends for a picture: its kind, and a `data:` address as browsers write them.

    Args:
        value: `{"kind": "drawing", "address": "data:image/png;base64,…", "task": None}`, or whatever came in its place.

    Returns:
        The picture; None if there is none yet.

    Raises:
        UndecodableImageError: If it is none that the page would send.
    """
    match value:
        case {"kind": "drawing" | "file" as kind, "address": str(address), "task": str() | None as task}:
            pass
        case _:
            raise UndecodableImageError("the picture did not come over as the page sends it")
    if not address:
        return None
    if address == "data:":  # what browsers make of an empty file
        return Picture(kind, b"", task)
    header, _, encoded = address.partition(",")
    if not (header.startswith("data:") and header.endswith(";base64")):
        raise UndecodableImageError("the picture did not come over as the page sends it")
    try:
        return Picture(kind, base64.b64decode(encoded, validate=True), task)
    except ValueError as error:
        raise UndecodableImageError("the picture did not come over whole") from error


def read_picture(
    reader: Reader, picture: Picture | None, model: Model, choices: Choices, limits: ImageLimits
) -> Shown | Problem:
    """Reads a picture as it was chosen to be.

    Args:
        reader: Who reads.
        picture: The picture; without one the answer says what to do.
        model: One of the reader's.
        choices: How to decode.
        limits: How large a picture may be.
    """
    try:
        options = choices.options(model.decoder)
        if picture is None:
            raise BlankDrawingError("there is nothing to read yet")
        drawn = picture.kind == "drawing"
        image = strip_of(picture.content, limits) if drawn else read_image(picture.content, limits)
        answer = reader.read(image if drawn else picture.content, model, options)
    except GlyphlineError as error:
        return Problem(explain(error))
    search = describe_search(options, model.decoder)
    return Shown(image, answer.reading, model, search, reader.place, answer.seconds)


def explain(error: GlyphlineError) -> str:
    """Says what is wrong in a sentence or two, by the names that things have on the page."""
    if isinstance(error, OptionsError):
        label = _FIELDS.get(error.field, error.field.replace("_", " ").capitalize())
        return f"{label}: {_sentence(error.message)}"
    advice = next((_ADVICE[kind] for kind in type(error).__mro__ if kind in _ADVICE), "")
    said = _sentence(str(error))
    return f"{said[0].upper()}{said[1:]} {advice}".rstrip()


def _sentence(message: str) -> str:
    return message if message.endswith((".", "!", "?")) else f"{message}."
