"""What a server's refusals become: a small hierarchy by what the caller can do about them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from glyphline.models.errors import GlyphlineError

__all__ = [
    "AccessError",
    "ClientClosedError",
    "DeadlineExceededError",
    "FieldViolation",
    "InputError",
    "InvalidRequestError",
    "NotFoundError",
    "OverloadedError",
    "RecognitionError",
    "UnavailableError",
    "from_call",
    "from_status",
    "input_error",
    "is_send_failure",
]

_CHANNEL_CLOSED = "Channel closed!"  # what gRPC says of calls whose client was closed
_SEND_FAILED = "Internal error from Core"  # what gRPC says where a call ended before all was sent
_DEADLINE_TOLERANCE_SECONDS = 0.05
_TOO_LARGE = re.compile(r"larger than max \((\d+) vs\. (\d+)\)")
_UNRESOLVED = re.compile(r"resol(ve|ving|ution)|DNS|hostname", re.IGNORECASE)
_BROKEN = re.compile(rf"RST_STREAM|^{_SEND_FAILED}$")  # a connection behind a proxy ended, or the stream itself
_UNREACHABLE = re.compile(
    r"connect(ing)? to|connections to|refused|timed out|connect error|no healthy upstream|keepalive", re.IGNORECASE
)
# What gRPC says where no connection came about that could be used: a name for it, and what to say instead.
_NO_CONNECTION = (
    (re.compile("WRONG_VERSION_NUMBER"), "TLS_NOT_SPOKEN", "speaks no TLS"),
    (re.compile("certificate has expired"), "CERTIFICATE_EXPIRED", "shows a certificate that has expired"),
    (
        re.compile(r"CERTIFICATE_VERIFY_FAILED(?:: ([a-z][a-z -]+[a-z]))?"),
        "CERTIFICATE_NOT_TRUSTED",
        "shows a certificate that is not trusted here",
    ),
    (
        re.compile("Hostname Verification Check failed|is not in peer certificate"),
        "CERTIFICATE_OF_ANOTHER_NAME",
        "shows a certificate for another name",
    ),
    (re.compile("parsing HTTP/2|Missing SETTINGS"), "GRPC_NOT_SPOKEN", "speaks no gRPC"),
    (
        re.compile(r"(all backends|all addresses).*(Socket closed|Connection reset|End of TCP stream|EOF)"),
        "CONNECTION_CLOSED",
        "closes the connection before anything is said",
    ),
)
_FAILURES = {
    grpc.StatusCode.UNAVAILABLE: "broke the connection off",
    grpc.StatusCode.CANCELLED: "ended the call",
    grpc.StatusCode.DEADLINE_EXCEEDED: "gave no answer in time",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "takes no more at the moment, or what is before it",
    grpc.StatusCode.PERMISSION_DENIED: "does not allow it, or what is before it",
    grpc.StatusCode.UNAUTHENTICATED: "does not know the caller, or what is before it",
    grpc.StatusCode.UNIMPLEMENTED: "does not know the call; is it a Glyphline server?",
}
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
        reason: Stable name of the reason, as `IMAGE_UNDECODABLE`, or `TLS_NOT_SPOKEN` and the like where there is no
            connection; empty if it is not known.
        field_violations: The fields at fault.
        retry_after: Seconds to wait before another try; None if the server does not suggest one.
        request_id: Of the request, for the server's log; empty if unknown.
        debug: What gRPC said of a failure that is not the server's, for a bug report; else empty.
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
        debug: str = "",
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.reason = reason
        self.field_violations = tuple(field_violations)
        self.retry_after = retry_after
        self.request_id = request_id
        self.debug = debug

    def __str__(self) -> str:
        return f"{self.message or 'no details'} ({self.code.name})"

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        match self.code:
            case grpc.StatusCode.UNAVAILABLE:
                return True
            case grpc.StatusCode.CANCELLED:  # not by the caller: gRPC cancels what arrives just as a server closes
                return self.debug != _CHANNEL_CLOSED
            case grpc.StatusCode.RESOURCE_EXHAUSTED:
                return self.retry_after is not None
            case _:
                return False


class InvalidRequestError(RecognitionError):
    """The image or an option is at fault; `field_violations` says which. Another try is in vain."""


class InputError(InvalidRequestError):
    """An input is no image that can be sent, such as a file that cannot be read. The server was not asked.

    What went wrong is its `__cause__`.
    """


class NotFoundError(RecognitionError):
    """There is no such model, or no such reading."""


class AccessError(RecognitionError):
    """The server asks for a token, or for another one: it does not know this one, or has not allowed it this."""


class UnavailableError(RecognitionError):
    """The server cannot be reached, is loading, or stops."""


class OverloadedError(RecognitionError):
    """More is asked of the server than it takes at the moment."""


class DeadlineExceededError(RecognitionError):
    """The answer did not come in time."""


class ClientClosedError(GlyphlineError):
    """The client was closed before the call."""

    def __init__(self) -> None:
        super().__init__("the client is closed")


_KINDS: dict[grpc.StatusCode, type[RecognitionError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequestError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.UNAUTHENTICATED: AccessError,
    grpc.StatusCode.PERMISSION_DENIED: AccessError,
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


def from_call(error: grpc.RpcError, target: str = "", remaining: float = math.inf) -> RecognitionError:
    """Converts the failure of a call, asyncio or not. What gRPC itself failed at is told in words of our own.

    Args:
        error: The failure.
        target: Address of the server.
        remaining: Seconds until the caller's deadline.
    """
    code, message, trailers = _describe(error)
    broken = code is grpc.StatusCode.INTERNAL and bool(_BROKEN.search(message))
    if (broken or code is grpc.StatusCode.CANCELLED) and remaining <= _DEADLINE_TOLERANCE_SECONDS:
        # The server's copy of the deadline was the first to pass, and HTTP/2 has no other word for that.
        code, message = grpc.StatusCode.DEADLINE_EXCEEDED, ""
    elif broken:
        code = grpc.StatusCode.UNAVAILABLE
    for key, value in trailers:
        if key == _DETAILS_KEY and isinstance(value, bytes):
            try:
                status = Status.FromString(value)
            except DecodeError:
                continue
            if status.code == code.value[0]:
                return from_status(status)
    if too_large := _TOO_LARGE.search(message):
        size, limit = too_large.groups()
        return InvalidRequestError(
            code,
            f"a message of {size} bytes is too large: at most {limit} bytes are taken",
            reason="MESSAGE_TOO_LARGE",
            debug=message,
        )
    server = f"the server at {target}" if target else "the server"
    reason, failure = _no_connection(code, message) or ("", _failure(code, message))
    return _KINDS.get(code, RecognitionError)(code, f"{server} {failure}", reason=reason, debug=message)


def is_send_failure(error: grpc.RpcError) -> bool:
    """Tells whether gRPC says of a call only that something could not be sent, and not how the call ended."""
    code, message, _ = _describe(error)
    return code is grpc.StatusCode.INTERNAL and message == _SEND_FAILED


def input_error(error: Exception, source: object = None) -> InputError:
    """Says what is wrong with an input that could not be made an image file.

    Args:
        error: Why not.
        source: The path of its file, if it has one.
    """
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    message = reason if source is None else f"{source}: {reason}"
    found = InputError(grpc.StatusCode.INVALID_ARGUMENT, message, reason="INPUT_UNREADABLE")
    found.__cause__ = error
    return found


def _no_connection(code: grpc.StatusCode, message: str) -> tuple[str, str] | None:
    """Names what keeps a connection from being made, and says it; None where that is another thing."""
    if code is not grpc.StatusCode.UNAVAILABLE:
        return None
    for pattern, name, words in _NO_CONNECTION:
        if found := pattern.search(message):
            why = next(filter(None, found.groups()), "") if name == "CERTIFICATE_NOT_TRUSTED" else ""
            return name, f"{words}: {why}" if why else words
    return None


def _failure(code: grpc.StatusCode, message: str) -> str:
    """Says in a few words at what gRPC failed, of which its own message tells the whole inner story."""
    if code is grpc.StatusCode.UNAVAILABLE and _UNRESOLVED.search(message):
        return "cannot be found: its name is not known"
    if code is grpc.StatusCode.UNAVAILABLE and _UNREACHABLE.search(message):
        return "cannot be reached"
    if code is grpc.StatusCode.CANCELLED and message == _CHANNEL_CLOSED:
        return "was not heard out: the client was closed"
    return _FAILURES.get(code, "failed and did not say why")


def _describe(error: grpc.RpcError) -> tuple[grpc.StatusCode, str, Sequence[tuple[str, str | bytes]]]:
    """Returns the code, the message and the trailing metadata, which both kinds of gRPC's errors carry."""
    if isinstance(error, (grpc.aio.AioRpcError, grpc.Call)):
        return error.code(), error.details() or "", tuple(error.trailing_metadata() or ())
    return grpc.StatusCode.UNKNOWN, str(error), ()
