"""Between the messages of the API and the objects of the domain; nothing but conversion happens here."""

from __future__ import annotations

import uuid
from functools import lru_cache
from typing import Literal

from google.protobuf.duration_pb2 import Duration

from glyphline.models.decoding.lexicon import Lexicon
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.decoding.readings import Alternative, Token
from glyphline.models.error_rate import EditCounts
from glyphline.models.errors import GlyphlineError, OptionsError
from glyphline.models.long_lines import widest_strip
from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.service.admission import ReadConfig, ReadRequest
from glyphline.service.catalogue import Catalogue, ServedModel
from glyphline.service.errors import RequestError
from glyphline.service.pipeline import Answer
from glyphline.service.status import status_of

__all__ = [
    "MAX_LEXICON_BYTES",
    "MAX_LEXICON_WORDS",
    "MAX_REFERENCE_CHARACTERS",
    "MAX_REQUEST_ID_CHARACTERS",
    "evaluation_message",
    "model_message",
    "new_request_id",
    "read_config",
    "read_item",
    "read_request",
    "reference_text",
    "response_message",
    "result_message",
]

MAX_REQUEST_ID_CHARACTERS = 128
MAX_REFERENCE_CHARACTERS = 4096
MAX_ALLOWED_CHARACTERS = 4096
MAX_LEXICON_WORDS = 5000  # of a request; what is larger is loaded by the server once and called by its name
MAX_LEXICON_BYTES = 256 * 1024
_SHORT_CONFIG_BYTES = 256

_PRIORITIES: dict[int, int] = {
    api.PRIORITY_UNSPECIFIED: 0,
    api.PRIORITY_LOW: -1,
    api.PRIORITY_NORMAL: 0,
    api.PRIORITY_HIGH: 1,
}


def new_request_id() -> str:
    """Makes a name for a request that came without."""
    return str(uuid.uuid4())


def read_config(message: api.RecognitionConfig) -> ReadConfig:
    """Converts a configuration. Most are those of a request before, and short: those are remembered.

    Raises:
        RequestError: If a value is none that a configuration can have.
    """
    content = message.SerializeToString()
    return _remembered_config(content) if len(content) <= _SHORT_CONFIG_BYTES else _convert_config(message)


@lru_cache(maxsize=256)
def _remembered_config(content: bytes) -> ReadConfig:
    return _convert_config(api.RecognitionConfig.FromString(content))


def _convert_config(message: api.RecognitionConfig) -> ReadConfig:
    if message.priority not in _PRIORITIES:
        raise RequestError("config.priority", f"{message.priority} is none of the priorities")
    for field in ("max_alternatives", "max_output_length"):
        if (value := getattr(message, field)) < 0:
            raise RequestError(f"config.{field}", f"must not be negative, not {value}")
    allowed = message.allowed_characters if message.HasField("allowed_characters") else None
    if allowed is not None and len(allowed) > MAX_ALLOWED_CHARACTERS:
        raise RequestError("config.allowed_characters", f"must have at most {MAX_ALLOWED_CHARACTERS} characters")
    usual = DecodingOptions()
    decoder: Literal["greedy", "beam"] | None = None
    beam_width, length_penalty = usual.beam_width, None
    match message.WhichOneof("decoder"):
        case "greedy":
            decoder = "greedy"
        case "beam_search":
            decoder, beam_width = "beam", message.beam_search.beam_width
            if message.beam_search.HasField("length_penalty"):
                length_penalty = message.beam_search.length_penalty
    return ReadConfig(
        model=message.model,
        version=message.model_version,
        options=DecodingOptions(
            decoder=decoder,
            beam_width=beam_width,
            max_alternatives=message.max_alternatives or 1,
            length_penalty=length_penalty,
            max_output_length=message.max_output_length or None,
            allowed_characters=allowed,
            token_details=message.enable_token_details,
            lexicon=_lexicon(message.lexicon) if message.HasField("lexicon") else None,
            several_words=message.HasField("lexicon") and message.lexicon.several_words,
            language_model=_language_model(message) if message.HasField("language_model") else None,
            language_model_weight=(
                message.language_model.weight
                if message.language_model.HasField("weight")
                else usual.language_model_weight
            ),
            length_bonus=message.length_bonus,
        ),
        priority=_PRIORITIES[message.priority],
    )


def read_request(message: api.RecognizeRequest, request_id: str) -> ReadRequest:
    """Converts the request of one image.

    Args:
        message: The request.
        request_id: Its id, made if the message had none.

    Raises:
        RequestError: If a value is none that a request can have.
    """
    return _request(message, request_id, read_config(message.config))


def read_item(message: api.BatchItem, request_id: str, config: ReadConfig) -> ReadRequest:
    """Converts an item of a batch or stream.

    Args:
        message: The item.
        request_id: Its id, made if the message had none.
        config: The configuration of the batch or stream.

    Raises:
        RequestError: If a value is none that an item can have.
    """
    return _request(message, request_id, read_config(message.config) if message.HasField("config") else config)


def reference_text(text: str) -> str:
    """Checks a reference text.

    Raises:
        RequestError: If it is too long.
    """
    if len(text) > MAX_REFERENCE_CHARACTERS:
        raise RequestError(
            "reference_text", f"must have at most {MAX_REFERENCE_CHARACTERS} characters, not {len(text)}"
        )
    return text


def response_message(answer: Answer) -> api.RecognizeResponse:
    """Converts an answer."""
    return api.RecognizeResponse(
        alternatives=[_alternative(alternative) for alternative in answer.reading.alternatives],
        model=answer.model.name,
        model_version=str(answer.model.version),
        evaluation=None if answer.evaluation is None else evaluation_message(answer.evaluation),
        metadata=api.ResponseMetadata(
            request_id=answer.request_id,
            queue_duration=_duration(answer.done.queue_seconds),
            inference_duration=_duration(answer.done.inference_seconds),
            batch_size=answer.done.batch_size,
            execution_provider=answer.done.provider,
        ),
    )


def result_message(item_id: str, request_id: str, answer: Answer | GlyphlineError) -> api.BatchItemResult:
    """Converts the outcome of an item of a batch or stream."""
    if isinstance(answer, Answer):
        return api.BatchItemResult(id=item_id, response=response_message(answer))
    return api.BatchItemResult(id=item_id, error=status_of(answer, request_id))


def evaluation_message(counts: EditCounts) -> api.Evaluation:
    """Converts a comparison."""
    return api.Evaluation(
        edit_distance=counts.edits,
        reference_length=counts.reference_characters,
        character_error_rate=counts.edits / max(counts.reference_characters, 1),
        exact_match=counts.exact,
    )


def model_message(model: ServedModel, catalogue: Catalogue, provider: str) -> api.Model:
    """Describes a model."""
    manifest = model.manifest
    latest = catalogue.is_latest(model)
    return api.Model(
        name=model.name,
        version=str(model.version),
        task=manifest.task,
        head=manifest.head,
        alphabet=manifest.alphabet,
        max_output_length=manifest.max_output_length,
        image_height=manifest.image.height,
        max_image_width=widest_strip(manifest),
        default_decoder=manifest.decoder.name,
        default_beam_width=manifest.decoder.beam_width,
        is_default=latest and model.name == catalogue.default_name,
        is_latest=latest,
        execution_provider=provider,
        licence=manifest.licence,
        labels=catalogue.labels_of(model),
        sha256=model.manifest_sha256,
        evaluations=[
            api.ModelEvaluation(
                data_set=evaluation.data_set,
                image_count=evaluation.images,
                character_error_rate=evaluation.cer,
                exact_match_rate=evaluation.exact,
            )
            for evaluation in manifest.evaluation
        ],
    )


def _request(message: api.RecognizeRequest | api.BatchItem, request_id: str, config: ReadConfig) -> ReadRequest:
    if len(request_id) > MAX_REQUEST_ID_CHARACTERS:
        raise RequestError("request_id", f"must have at most {MAX_REQUEST_ID_CHARACTERS} characters")
    return ReadRequest(
        request_id=request_id,
        content=message.image.content,
        config=config,
        reference=reference_text(message.reference_text) if message.HasField("reference_text") else None,
    )


def _lexicon(message: api.Lexicon) -> Lexicon | str:
    """Converts a lexicon, which is named or spelt out."""
    if message.name and message.words:
        raise RequestError("config.lexicon", "must have a name or words, not both")
    if message.name:
        return message.name
    if len(message.words) > MAX_LEXICON_WORDS:
        raise RequestError(
            "config.lexicon.words",
            f"must be at most {MAX_LEXICON_WORDS}, not {len(message.words)}; have the server load larger lexicons",
        )
    if message.ByteSize() > MAX_LEXICON_BYTES:
        raise RequestError(
            "config.lexicon.words", f"must have at most {MAX_LEXICON_BYTES} bytes; have the server load larger lexicons"
        )
    try:
        return Lexicon(message.words)
    except OptionsError as error:
        raise RequestError("config.lexicon", error.message) from error


def _language_model(message: api.RecognitionConfig) -> str:
    if not message.language_model.name:
        raise RequestError("config.language_model.name", "must not be empty")
    return message.language_model.name


def _alternative(alternative: Alternative) -> api.Alternative:
    return api.Alternative(
        text=alternative.text,
        confidence=alternative.confidence,
        log_probability=alternative.log_probability,
        tokens=[_token(token) for token in alternative.tokens],
        truncated=alternative.truncated,
    )


def _token(token: Token) -> api.Token:
    span = None if token.span is None else api.Span(start=token.span[0], end=token.span[1])
    return api.Token(text=token.text, confidence=token.confidence, span=span)


def _duration(seconds: float) -> Duration:
    whole, fraction = divmod(max(0, round(seconds * 1e9)), 10**9)
    return Duration(seconds=whole, nanos=fraction)
