"""Where a call's errors become its status: nothing but what the status table says leaves the server."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable
from typing import Any, Never, TypeVar
from urllib.parse import quote

import grpc

from glyphline.models.errors import GlyphlineError
from glyphline.service.logs import Throttle, add_log_fields, log_call
from glyphline.service.security.callers import client_of
from glyphline.service.status import DETAILS_KEY, code_of, status_of

__all__ = [
    "REQUEST_ID_KEY",
    "CallerGoneError",
    "Context",
    "call_deadline",
    "call_request_id",
    "guard",
    "log_failure",
    "refuse",
]

REQUEST_ID_KEY = "x-request-id"

logger = logging.getLogger(__name__)

Context = grpc.aio.ServicerContext[Any, Any]
CallerGoneError = grpc.aio.InternalError  # what gRPC raises if it cannot send: its core has closed the call
Response = TypeVar("Response")

_LONGEST_REQUEST_ID = 128
_LINES_PER_SECOND = 10
# What comes in crowds when there is too much to do. To write it all costs a good part of what it costs to refuse it.
_CROWDS = {
    code: Throttle(_LINES_PER_SECOND)
    for code in (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.UNAVAILABLE,
    )
}


async def guard(context: Context, method: str, request_id: str, work: Awaitable[Response]) -> Response:
    """Does the work of a call; whatever it raises ends the call with the status that the table says.

    The caller is told the request id in the trailing metadata, too, whatever becomes of the call.

    Args:
        context: The call's context.
        method: The call's name, for the log.
        request_id: The call's request id, for the log and the caller; may be empty.
        work: Makes the response.
    """
    request_id = request_id or call_request_id(context)
    context.set_trailing_metadata(_echo(request_id))
    add_log_fields(client=client_of(context))
    began = time.perf_counter()
    try:
        response = await work
    except (asyncio.CancelledError, grpc.aio.AbortError):
        raise
    except Exception as error:
        await refuse(context, method, request_id, error)
    seconds = round(time.perf_counter() - began, 6)
    log_call(request_id, method=method, code="OK", seconds=seconds)
    return response


async def refuse(context: Context, method: str, request_id: str, error: Exception) -> Never:
    """Ends a call with the status of an error, and writes a line about it.

    Raises:
        CancelledError: If the caller has left already, so that there is nobody to tell. That is no fault of ours: the
            call ends as one whose end gRPC has told in time.
    """
    if isinstance(error, CallerGoneError):
        raise asyncio.CancelledError from error
    add_log_fields(client=client_of(context))
    log_failure(error, method, request_id)
    status = status_of(error, request_id)
    details = (DETAILS_KEY, status.SerializeToString())
    try:
        await context.abort(code_of(error), status.message, (*_echo(request_id), details))
    except CallerGoneError as failure:
        raise asyncio.CancelledError from failure
    raise AssertionError("a call goes on that was ended")


def log_failure(error: Exception, method: str, request_id: str) -> None:
    """Writes one line about a failed request: what the caller did wrong as information, a fault of ours as an error.

    Of what is refused because there is too much to do, ten lines a second are written for each status; the next one
    says how many were left out.
    """
    code = code_of(error)
    extra: dict[str, object] = {"method": method, "request_id": request_id[:200], "code": code.name}
    if crowd := _CROWDS.get(code):
        left_out = crowd.take()
        if left_out is None:
            return
        if left_out:
            extra["left_out"] = left_out
    if not isinstance(error, GlyphlineError):
        logger.error("request failed", extra=extra, exc_info=error)
    elif code is grpc.StatusCode.INTERNAL:
        logger.error("request failed", extra=extra | {"reason": str(error)})
    else:
        logger.info("request refused", extra=extra | {"reason": str(error)[:500]})


def call_deadline(context: Context) -> float | None:
    """Returns the moment of the loop's clock at which the caller stops waiting; None if it does not."""
    remaining = context.time_remaining()
    return None if remaining is None else asyncio.get_running_loop().time() + remaining


def call_request_id(context: Context) -> str:
    """Returns the request id that a call's metadata has, as proxies write it, or a new one."""
    for key, value in context.invocation_metadata() or ():
        if key == REQUEST_ID_KEY and isinstance(value, str) and 0 < len(value) <= _LONGEST_REQUEST_ID:
            return value
    return str(uuid.uuid4())


def _echo(request_id: str) -> tuple[tuple[str, str], ...]:
    """Returns the metadata that tells a request id. What metadata cannot carry of it is written as in addresses."""
    return ((REQUEST_ID_KEY, quote(request_id[: 2 * _LONGEST_REQUEST_ID], safe="!#$&'()*+,/:;=?@[]")),)
