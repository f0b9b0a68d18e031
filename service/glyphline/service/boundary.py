"""Where a call's errors become its status: nothing but what the status table says leaves the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, TypeVar

import grpc

from glyphline.models.errors import GlyphlineError
from glyphline.service.status import DETAILS_KEY, code_of, status_of

__all__ = ["Context", "call_deadline", "guard", "log_failure"]

logger = logging.getLogger(__name__)

Context = grpc.aio.ServicerContext[Any, Any]
Response = TypeVar("Response")


async def guard(context: Context, method: str, request_id: str, work: Awaitable[Response]) -> Response:
    """Does the work of a call; whatever it raises ends the call with the status that the table says.

    Args:
        context: The call's context.
        method: The call's name, for the log.
        request_id: The call's request id, for the log and the caller; may be empty.
        work: Makes the response.
    """
    try:
        return await work
    except (asyncio.CancelledError, grpc.aio.AbortError):
        raise
    except Exception as error:
        log_failure(error, method, request_id)
        status = status_of(error, request_id)
        await context.abort(code_of(error), status.message, ((DETAILS_KEY, status.SerializeToString()),))


def log_failure(error: Exception, method: str, request_id: str) -> None:
    """Writes one line about a failed request: what the caller did wrong as information, a fault of ours as an error."""
    code = code_of(error)
    extra = {"method": method, "request_id": request_id[:200], "code": code.name}
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
