"""The door: an image comes in with all that is needed to read it, or is refused at once with the reason."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from glyphline.models.decoding.lexicon import Lexicon
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.errors import GlyphlineError, OptionsError
from glyphline.models.image import ImageHeader, ImageLimits, read_header
from glyphline.models.long_lines import columns_to_read, readable_width
from glyphline.models.recognizer import bucket_width
from glyphline.service.batcher import Item
from glyphline.service.catalogue import Catalogue, ServedModel
from glyphline.service.costs import reading_work
from glyphline.service.errors import DeadlineError, NotReadyError
from glyphline.service.guides import Guides
from glyphline.service.metric_labels import UNKNOWN
from glyphline.service.metrics import Metrics

__all__ = ["Admission", "ReadConfig", "ReadRequest"]

_REMEMBERED_OPTIONS = 256
_SHORT_BYTES = 16 * 1024  # a file of this size has no header that takes long to read, whatever its maker meant by it


@dataclass(frozen=True, slots=True)
class ReadConfig:
    """How a caller wants images read.

    Attributes:
        model: Name of the model; empty for the default.
        version: Version of the model; empty for the latest.
        options: How to decode. A beam width of 0 is the model's own.
        priority: The higher goes first.
    """

    model: str = ""
    version: str = ""
    options: DecodingOptions = DecodingOptions()  # noqa: RUF009  (frozen)
    priority: int = 0


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What a caller asks about one image.

    Attributes:
        request_id: Its name.
        content: The image file.
        config: How to read it.
        reference: The true text, if known.
    """

    request_id: str
    content: bytes
    config: ReadConfig
    reference: str | None


class Admission:
    """Checks what is cheap to check before an image may wait: no pixel is decoded here.

    Args:
        catalogue: The models held.
        limits: How large an image may be.
        max_beam_width: Widest beam that may be asked for.
        guides: The lexicons and language models held.
        ready: Whether there is anybody to read.
        metrics: Where refusals are counted.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        *,
        limits: ImageLimits,
        max_beam_width: int,
        guides: Guides,
        ready: Callable[[], bool],
        metrics: Metrics,
    ) -> None:
        self._catalogue = catalogue
        self._limits = limits
        self._max_beam_width = max_beam_width
        self._guides = guides
        self._ready = ready
        self._metrics = metrics
        self._remembered = lru_cache(maxsize=_REMEMBERED_OPTIONS)(self._complete)

    async def admit(self, request: ReadRequest, client: str, deadline: float | None) -> Item:
        """Completes a request.

        Args:
            request: The request.
            client: Who asks: an opaque name.
            deadline: Moment of the loop's clock; None for none.

        Raises:
            GlyphlineError: If it is refused: UnknownModelError, OptionsError, ImageError, DeadlineError.
        """
        model: ServedModel | None = None
        decoder = UNKNOWN
        try:
            model = self._catalogue.find(request.config.model, request.config.version)
            options, decoder, beam_width = self._completed(request.config.options, model)
            header = await self._read_header(request.content)
            width = readable_width(header.width, header.height, model.manifest)
            if deadline is not None and deadline <= asyncio.get_running_loop().time():
                raise DeadlineError("the deadline had passed when the request arrived")
        except GlyphlineError as error:
            self._metrics.count_refusal(error, model, decoder)
            raise
        columns = bucket_width(columns_to_read(width, model.manifest))
        guided = options.guided or options.leaves_guide_to(model.manifest.decoder)
        return Item(
            request_id=request.request_id,
            client=client,
            content=request.content,
            model=model,
            options=options,
            decoder=decoder,
            width=columns,
            work=reading_work(columns, model.manifest, beam_width, guided=guided),
            pixels=header.width * header.height,
            priority=request.config.priority,
            deadline=deadline,
            reference=request.reference,
        )

    def forget(self) -> None:
        """Forgets what was remembered of models: those that have been exchanged must go."""
        self._remembered.cache_clear()

    def check_ready(self) -> None:
        """Refuses everything while there is nobody to read.

        Raises:
            NotReadyError: If so.
        """
        if not self._ready():
            error = NotReadyError("the server is not ready: its models are loading")
            self._metrics.count_call_refusal(error)
            raise error

    def check_config(self, config: ReadConfig) -> None:
        """Refuses a configuration that no image could be read with.

        Raises:
            UnknownModelError: If there is no such model.
            OptionsError: If a value cannot be honoured.
        """
        try:
            self._completed(config.options, self._catalogue.find(config.model, config.version))
        except GlyphlineError as error:
            self._metrics.count_call_refusal(error)
            raise

    async def _read_header(self, content: bytes) -> ImageHeader:
        """Reads a header; one that may be long is read in a thread, where it holds up nobody."""
        if len(content) <= _SHORT_BYTES:
            return read_header(content, self._limits)
        return await asyncio.to_thread(read_header, content, self._limits)

    def _completed(self, options: DecodingOptions, model: ServedModel) -> tuple[DecodingOptions, str, int]:
        """Completes options like `_complete`; those of most images are those of one before."""
        return (self._complete if isinstance(options.lexicon, Lexicon) else self._remembered)(options, model)

    def _complete(self, options: DecodingOptions, model: ServedModel) -> tuple[DecodingOptions, str, int]:
        """Fills in the model's beam width and returns the options with the decoder and the width that they come to."""
        manifest = model.manifest
        if options.decoder == "beam" and options.beam_width == 0:
            options = dataclasses.replace(options, beam_width=manifest.decoder.beam_width)
        if not 1 <= options.beam_width <= self._max_beam_width:
            raise OptionsError("beam_width", f"must be from 1 to {self._max_beam_width}, not {options.beam_width}")
        # A name is checked but kept: what it stands for is in the worker already.
        filled = self._guides.fill(options)
        filled.validate(model.alphabet)
        # The guide itself is built where it is needed, not in this process.
        plain = dataclasses.replace(filled, lexicon=None, several_words=False, language_model=None, length_bonus=0.0)
        if filled.guided:
            width = min(filled.width(manifest.decoder), self._max_beam_width)
            options, plain = (dataclasses.replace(each, decoder="beam", beam_width=width) for each in (options, plain))
        resolved = plain.resolve(model.alphabet, manifest.decoder, manifest.max_output_length)
        decoder = "beam" if resolved.beam_width > 1 or filled.guided else "greedy"
        return options, decoder, resolved.beam_width
