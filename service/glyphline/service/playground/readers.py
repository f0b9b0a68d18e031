"""Who reads the pictures of the page: this process, or a server."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from glyphline.models.bundle import Bundle
from glyphline.models.decoding import DecodingOptions, Reading
from glyphline.models.errors import (
    EmptyImageError,
    GlyphlineError,
    ImageError,
    ImageTooLargeError,
    ImageTooWideError,
    ModelNotFoundError,
    OptionsError,
    UndecodableImageError,
)
from glyphline.models.image import GreyImage, ImageLimits
from glyphline.models.manifest import DecoderDefaults
from glyphline.models.recognizer import Recognizer
from glyphline.models.session import available_threads
from glyphline.service.playground.choices import Model

if TYPE_CHECKING:
    from glyphline.service.client import Client, ModelInfo, RecognitionError

__all__ = ["Answer", "LocalReader", "Reader", "ServerError", "ServerReader"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What was read.

    Attributes:
        reading: The reading, with the details of characters.
        seconds: How long it took; with a server, there and back.
    """

    reading: Reading
    seconds: float


class ServerError(GlyphlineError):
    """The server did not read the picture, and the picture is not to blame."""


class Reader(Protocol):
    """Reads pictures."""

    @property
    def place(self) -> str:
        """Says where the reading is done."""

    def models(self) -> Sequence[Model]:
        """Lists the models that there are now, the default one first; at least one.

        Raises:
            GlyphlineError: If they cannot be had.
        """

    def read(self, picture: bytes | GreyImage, model: Model, options: DecodingOptions) -> Answer:
        """Reads a picture.

        Raises:
            GlyphlineError: If it cannot be read so; the message says why.
        """


class LocalReader:
    """Reads in this process. A model's networks are opened when it is asked for first."""

    place = "on this machine"

    def __init__(self, bundles: Sequence[Bundle], limits: ImageLimits = ImageLimits()) -> None:  # noqa: B008  (frozen)
        """Takes the bundles.

        Args:
            bundles: The default first; at least one.
            limits: How large a picture may be.
        """
        self._bundles = {_model_of(bundle): bundle for bundle in bundles}
        self._limits = limits
        self._opened: dict[Model, Recognizer] = {}
        self._opening = threading.Lock()

    def models(self) -> Sequence[Model]:
        """Lists the models, the default one first."""
        return list(self._bundles)

    def read(self, picture: bytes | GreyImage, model: Model, options: DecodingOptions) -> Answer:
        """Reads a picture; see `Reader`. The time does not count what opening the model takes."""
        recognizer = self._recognizer(model)
        begin = time.perf_counter()
        (outcome,) = recognizer.recognize([picture], options, limits=self._limits)
        seconds = time.perf_counter() - begin
        if isinstance(outcome, ImageError):
            raise outcome
        return Answer(outcome, seconds)

    def _recognizer(self, model: Model) -> Recognizer:
        with self._opening:
            if model not in self._opened:
                self._opened[model] = Recognizer.load(self._bundles[model], threads=available_threads())
            return self._opened[model]


class ServerReader:
    """Asks a server, whose models may change while the page is open."""

    def __init__(self, client: Client, target: str) -> None:
        """Takes a client, which whoever made it closes.

        Args:
            client: The client.
            target: Address of its server, to be shown.
        """
        self._client = client
        self.place = f"by the server at {target}"

    def models(self) -> Sequence[Model]:
        """Asks for the models, the default one first; see `Reader`."""
        found = self._client.list_models()
        if not found:
            raise ModelNotFoundError("the server has no models")
        found.sort(key=lambda info: (not (info.is_default and info.is_latest), info.name, -info.version))
        return [_served(info) for info in found]

    def read(self, picture: bytes | GreyImage, model: Model, options: DecodingOptions) -> Answer:
        """Has the server read a picture; see `Reader`."""
        from glyphline.service.client import RecognitionError  # noqa: PLC0415

        content = picture.pixels if isinstance(picture, GreyImage) else picture
        begin = time.perf_counter()
        try:
            result = self._client.recognize(content, model=model.name, version=model.version, options=options)
        except RecognitionError as error:
            raise _plain(error) from error
        return Answer(result.reading, time.perf_counter() - begin)


def _model_of(bundle: Bundle) -> Model:
    manifest = bundle.manifest
    return Model(manifest.name, manifest.version, manifest.task, manifest.decoder)


def _served(info: ModelInfo) -> Model:
    name: Literal["greedy", "beam"] = "beam" if info.default_decoder == "beam" else "greedy"
    decoder = DecoderDefaults(name=name, beam_width=info.default_beam_width or 1)
    return Model(info.name, info.version, info.task, decoder)


_PICTURE_ERRORS: dict[str, type[ImageError]] = {
    "IMAGE_EMPTY": EmptyImageError,
    "IMAGE_FATAL": ImageError,
    "IMAGE_INVALID": ImageError,
    "IMAGE_TOO_LARGE": ImageTooLargeError,
    "IMAGE_TOO_WIDE": ImageTooWideError,
    "IMAGE_UNDECODABLE": UndecodableImageError,
    "MESSAGE_TOO_LARGE": ImageTooLargeError,
}


def _plain(error: RecognitionError) -> GlyphlineError:
    """Turns a server's error into the one that reading here would have met with."""
    if error.reason in _PICTURE_ERRORS:
        return _PICTURE_ERRORS[error.reason](error.message)
    if error.reason == "OPTION_INVALID" and error.field_violations:
        violation = error.field_violations[0]
        return OptionsError(violation.field.rpartition(".")[2], violation.description)
    return ServerError(error.message or str(error))
