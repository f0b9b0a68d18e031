"""What a server's refusals become: a small hierarchy by what the caller can do about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from glyphline.models.errors import GlyphlineError

__all__ = [
    "DeadlineExceededError",
    "FieldViolation",
    "InvalidRequestError",
    "NotFoundError",
    "OverloadedError",
    "RecognitionError",
    "UnavailableError",
    "from_call",
    "from_status",
]

_CHANNEL_CLOSED = "Channel closed!"  # what gRPC says of calls whose client was closed
_DETAILS_KEY = "grpc-status-details-bin"
_CODES: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """A field of the request that the server would not take.

    Attributes:
        field: Its path, as `image.content`.
        description: What is wrong with it.
    """

    field: str
    description: str


class RecognitionError(GlyphlineError):
    """The server did not do what was asked.

    Attributes:
        code: The gRPC status.
        message: The server's words.
        reason: Stable name of the reason, as `IMAGE_UNDECODABLE`; empty if the failure is not the server's.
        field_violations: The fields at fault.
        retry_after: Seconds to wait before another try; None if the server does not suggest one.
        request_id: Of the request, for the server's log; empty if unknown.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        *,
        reason: str = "",
        field_violations: Sequence[FieldViolation] = (),
        retry_after: float | None = None,
        request_id: str = "",
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.reason = reason
        self.field_violations = tuple(field_violations)
        self.retry_after = retry_after
        self.request_id = request_id

    def __str__(self) -> str:
        return f"{self.message or 'no details'} ({self.code.name})"

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        match self.code:
            case grpc.StatusCode.UNAVAILABLE:
                return True
            case grpc.StatusCode.CANCELLED:  # not by the caller: gRPC cancels what arrives just as a server closes
                return self.message != _CHANNEL_CLOSED
            case grpc.StatusCode.RESOURCE_EXHAUSTED:
                return self.retry_after is not None
            case _:
                return False


class InvalidRequestError(RecognitionError):
    """The image or an option is at fault; `field_violations` says which. Another try is in vain."""


class NotFoundError(RecognitionError):
    """There is no such model, or no such reading."""


class UnavailableError(RecognitionError):
    """The server cannot be reached, is loading, or stops."""


class OverloadedError(RecognitionError):
    """More is asked of the server than it takes, or a message is too large."""


class DeadlineExceededError(RecognitionError):
    """The answer did not come in time."""


_KINDS: dict[grpc.StatusCode, type[RecognitionError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequestError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.CANCELLED: UnavailableError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
}


def from_status(status: Status) -> RecognitionError:
    """Converts the status of an item."""
    info, retry, bad = ErrorInfo(), RetryInfo(), BadRequest()
    retry_after = None
    for detail in status.details:
        detail.Unpack(info)
        detail.Unpack(bad)
        if detail.Unpack(retry):
            retry_after = retry.retry_delay.ToTimedelta().total_seconds()
    code = _CODES.get(status.code, grpc.StatusCode.UNKNOWN)
    return _KINDS.get(code, RecognitionError)(
        code,
        status.message,
        reason=info.reason,
        field_violations=[FieldViolation(each.field, each.description) for each in bad.field_violations],
        retry_after=retry_after,
        request_id=info.metadata.get("request_id", ""),
    )


def from_call(error: grpc.RpcError) -> RecognitionError:
    """Converts the failure of a call, asyncio or not."""
    code, message, trailers = _describe(error)
    for key, value in trailers:
        if key == _DETAILS_KEY and isinstance(value, bytes):
            try:
                status = Status.FromString(value)
            except DecodeError:
                continue
            if status.code == code.value[0]:
                return from_status(status)
    return _KINDS.get(code, RecognitionError)(code, message)


def _describe(error: grpc.RpcError) -> tuple[grpc.StatusCode, str, Sequence[tuple[str, str | bytes]]]:
    """Returns the code, the message and the trailing metadata, which both kinds of gRPC's errors carry."""
    if isinstance(error, (grpc.aio.AioRpcError, grpc.Call)):
        return error.code(), error.details() or "", tuple(error.trailing_metadata() or ())
    return grpc.StatusCode.UNKNOWN, str(error), ()
