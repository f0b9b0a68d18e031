"""Which gRPC status each error of the domain becomes: one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, ResourceInfo, RetryInfo
from google.rpc.status_pb2 import Status

from glyphline.models import errors as domain
from glyphline.service import errors as service

__all__ = ["DETAILS_KEY", "DOMAIN", "code_of", "status_of"]

DETAILS_KEY = "grpc-status-details-bin"
DOMAIN = "glyphline"

# Bytes: statuses travel in headers, which peers limit to 8 KB, and where a byte may become three.
_LONGEST_MESSAGE = 600
_LONGEST_NAME = 512
_OPTION_FIELDS = {
    "decoder": "config.decoder",
    "beam_width": "config.beam_search.beam_width",
    "length_penalty": "config.beam_search.length_penalty",
    "max_alternatives": "config.max_alternatives",
    "max_output_length": "config.max_output_length",
    "allowed_characters": "config.allowed_characters",
    "token_details": "config.enable_token_details",
    "several_words": "config.lexicon.several_words",
    "language_model_weight": "config.language_model.weight",
}


def _field(path: str) -> Callable[[Any], Message]:
    """Details that name a field, always the same."""

    def build(error: Exception) -> Message:
        return BadRequest(field_violations=[BadRequest.FieldViolation(field=path, description=_shorten(str(error)))])

    return build


def _option(error: domain.OptionsError) -> Message:
    """Details that name the field of an option."""
    path = _OPTION_FIELDS.get(error.field, f"config.{error.field}")
    return BadRequest(field_violations=[BadRequest.FieldViolation(field=path, description=_shorten(error.message))])


def _request_field(error: service.RequestError) -> Message:
    """Details that name the field which the error names."""
    violation = BadRequest.FieldViolation(field=error.field, description=_shorten(error.message))
    return BadRequest(field_violations=[violation])


def _retry(seconds: float) -> Callable[[Any], Message]:
    """Details that ask for another try after a pause."""

    def build(error: Exception) -> Message:
        del error
        return RetryInfo(retry_delay=Duration(nanos=round(seconds * 1e9)))

    return build


def _rate(error: service.RateError) -> Message:
    """Details that tell when the token may take more."""
    delay = Duration()
    delay.FromNanoseconds(round(error.retry_seconds * 1e9))
    return RetryInfo(retry_delay=delay)


def _model(error: service.UnknownModelError) -> Message:
    """Details that name the model."""
    return ResourceInfo(
        resource_type="model", resource_name=_shorten(error.name, _LONGEST_NAME), description=_shorten(str(error))
    )


def _guide(error: service.UnknownGuideError) -> Message:
    """Details that name the lexicon or language model."""
    return ResourceInfo(
        resource_type=error.kind, resource_name=_shorten(error.name, _LONGEST_NAME), description=_shorten(str(error))
    )


def _request(error: service.RequestNotFoundError | service.ReferenceConflictError) -> Message:
    """Details that name the reading."""
    name = error.request_id if isinstance(error, service.RequestNotFoundError) else ""
    return ResourceInfo(
        resource_type="reading", resource_name=_shorten(name, _LONGEST_NAME), description=_shorten(str(error))
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """What an error becomes.

    Attributes:
        code: The status.
        reason: Its stable name, for ErrorInfo.
        details: Builds what else is told; None for nothing.
        message: What the caller is told instead of the error's own message.
    """

    code: grpc.StatusCode
    reason: str
    details: Callable[[Any], Message] | None = None
    message: str | None = None


_Code = grpc.StatusCode
_INTERNAL = _Row(_Code.INTERNAL, "INTERNAL", message="internal error; the server's log has it under the request id")

# The first row that fits an error's class, its own before its parents', is the one.
_TABLE: dict[type[Exception], _Row] = {
    domain.EmptyImageError: _Row(_Code.INVALID_ARGUMENT, "IMAGE_EMPTY", _field("image.content")),
    domain.UndecodableImageError: _Row(_Code.INVALID_ARGUMENT, "IMAGE_UNDECODABLE", _field("image.content")),
    domain.ImageTooLargeError: _Row(_Code.INVALID_ARGUMENT, "IMAGE_TOO_LARGE", _field("image.content")),
    domain.ImageTooWideError: _Row(_Code.INVALID_ARGUMENT, "IMAGE_TOO_WIDE", _field("image.content")),
    domain.ImageError: _Row(_Code.INVALID_ARGUMENT, "IMAGE_INVALID", _field("image.content")),
    domain.OptionsError: _Row(_Code.INVALID_ARGUMENT, "OPTION_INVALID", _option),
    service.RequestError: _Row(_Code.INVALID_ARGUMENT, "REQUEST_INVALID", _request_field),
    service.UnknownModelError: _Row(_Code.NOT_FOUND, "MODEL_NOT_FOUND", _model),
    service.UnknownGuideError: _Row(_Code.NOT_FOUND, "GUIDE_NOT_FOUND", _guide),
    service.RequestNotFoundError: _Row(_Code.NOT_FOUND, "READING_NOT_FOUND", _request),
    service.ReferenceConflictError: _Row(_Code.ALREADY_EXISTS, "REFERENCE_EXISTS", _request),
    service.QueueFullError: _Row(_Code.RESOURCE_EXHAUSTED, "QUEUE_FULL", _retry(0.25)),
    service.RateError: _Row(_Code.RESOURCE_EXHAUSTED, "RATE_EXCEEDED", _rate),
    service.UnauthenticatedError: _Row(_Code.UNAUTHENTICATED, "UNAUTHENTICATED"),
    service.PermissionDeniedError: _Row(_Code.PERMISSION_DENIED, "PERMISSION_DENIED"),
    service.IdleStreamError: _Row(_Code.ABORTED, "STREAM_IDLE"),
    service.NotReadyError: _Row(_Code.UNAVAILABLE, "NOT_READY", _retry(0.5)),
    service.FatalImageError: _Row(
        _Code.INTERNAL, "IMAGE_FATAL", message="workers die over this image; do not repeat it"
    ),
    service.DeadlineError: _Row(_Code.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"),
    Exception: _INTERNAL,
}


def code_of(error: Exception) -> grpc.StatusCode:
    """Returns the status code of an error."""
    return _row(error).code


def status_of(error: Exception, request_id: str = "") -> Status:
    """Returns the status that an error becomes, with its details.

    Args:
        error: The error. One that is not of the domain is told as an internal one, without its message.
        request_id: Of the request, which the details repeat.
    """
    row = _row(error)
    info = ErrorInfo(reason=row.reason, domain=DOMAIN)
    if request_id:
        info.metadata["request_id"] = _shorten(request_id, _LONGEST_NAME)
    details: list[Message] = [info]
    if row.details is not None:
        details.append(row.details(error))
    status = Status(code=row.code.value[0], message=row.message or _shorten(str(error)))
    for detail in details:
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    return status


def _row(error: Exception) -> _Row:
    return next(_TABLE[kind] for kind in type(error).__mro__ if kind in _TABLE)


def _shorten(text: str, limit: int = _LONGEST_MESSAGE) -> str:
    """Cuts a text to a number of bytes, without half a character at its end."""
    content = text.encode("utf-8", "replace")
    return text if len(content) <= limit else f"{content[:limit].decode('utf-8', 'ignore')}…"
