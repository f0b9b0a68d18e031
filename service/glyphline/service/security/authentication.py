"""Lets in only calls that come with a token."""

# Handlers of any service pass through here: their messages have no type in common.
# ruff: noqa: ANN401

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc

from glyphline.service.boundary import Context, guard
from glyphline.service.errors import PermissionDeniedError, ServiceError, UnauthenticatedError
from glyphline.service.grpc_metrics import MetricsInterceptor
from glyphline.service.interceptors import Continuation, Handler
from glyphline.service.metrics import Metrics
from glyphline.service.security.callers import GRANT
from glyphline.service.security.tokens import Grant
from glyphline.service.status import code_of

__all__ = ["AuthenticationInterceptor"]

_OPEN = "/grpc.health.v1.Health/"  # for load balancers, which have no token; it tells nothing but whether all is well
_WRITING = "/glyphline.recognition.v1.FeedbackService/"
_SCHEME = "bearer "


class AuthenticationInterceptor(grpc.aio.ServerInterceptor):
    """Refuses calls without a good token, before a byte of their messages is read.

    Args:
        find: Returns what a token allows; None if it is not known.
        metrics: Where refusals are counted by reason.
        calls: Where refused calls are counted.
    """

    def __init__(self, find: Callable[[str], Grant | None], metrics: Metrics, calls: MetricsInterceptor) -> None:
        self._find = find
        self._metrics = metrics
        self._calls = calls

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> Handler | None:
        """Returns the method's handler, or what refuses the call."""
        handler = await continuation(handler_call_details)
        path = handler_call_details.method
        if handler is None or path.startswith(_OPEN):
            return handler
        try:
            GRANT.set(self._admit(path, handler_call_details))
        except ServiceError as error:
            self._metrics.count_call_refusal(error)
            self._calls.count_refused(path, handler, code_of(error))
            return _refusal(path.rpartition("/")[2], error)
        return handler

    def _admit(self, path: str, details: grpc.HandlerCallDetails) -> Grant:
        grant = self._find(_bearer(details))
        if grant is None:
            raise UnauthenticatedError("the server does not know the token")
        if grant.read_only and path.startswith(_WRITING):
            raise PermissionDeniedError("the token may read, and not hand in true texts")
        return grant


def _bearer(details: grpc.HandlerCallDetails) -> str:
    """Returns the token that a call came with."""
    for key, value in details.invocation_metadata or ():
        if key == "authorization" and isinstance(value, str) and value[: len(_SCHEME)].lower() == _SCHEME:
            return value[len(_SCHEME) :].strip()
    raise UnauthenticatedError("the call needs a token, as metadata: authorization: Bearer TOKEN")


def _refusal(method: str, error: ServiceError) -> Handler:
    """Makes what refuses one call. It reads and answers nothing, so that it can stand for a method of any kind."""

    async def refuse(requests: Any, context: Context) -> None:
        del requests
        await guard(context, method, "", _raise(error))

    return grpc.stream_stream_rpc_method_handler(refuse)


async def _raise(error: Exception) -> None:
    raise error
