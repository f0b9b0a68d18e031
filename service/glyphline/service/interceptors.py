"""What the interceptors have in common: each wraps the handler of every method, once, and keeps its kind."""

# Handlers of any service pass through here: their messages have no type in common.
# ruff: noqa: ANN401

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import grpc

__all__ = ["Continuation", "Handler", "WrappingInterceptor", "behaviour_of", "kind_of", "with_behaviour"]

# Written as text: gRPC's class takes parameters in its type stubs only.
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Continuation: TypeAlias = "Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]]"

_KINDS = {
    (False, False): "unary",
    (False, True): "server_stream",
    (True, False): "client_stream",
    (True, True): "bidi_stream",
}


class WrappingInterceptor(grpc.aio.ServerInterceptor, ABC):
    """Wraps the handlers of the methods that there are; other names are the caller's to choose, and pass."""

    def __init__(self) -> None:
        self._wrapped: dict[str, Handler] = {}  # by path

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> Handler | None:
        """Returns the method's handler, wrapped; the wrapping is made once."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        path = handler_call_details.method
        if path not in self._wrapped:
            self._wrapped[path] = self.wrap(path, handler)
        return self._wrapped[path]

    @abstractmethod
    def wrap(self, path: str, handler: Handler) -> Handler:
        """Wraps the handler of a method.

        Args:
            path: `/package.Service/Method`.
            handler: Its handler.
        """


def kind_of(request_streaming: bool, response_streaming: bool) -> str:
    """Names the kind of a method as the metrics of the gRPC ecosystem do."""
    return _KINDS[bool(request_streaming), bool(response_streaming)]


def behaviour_of(handler: Handler) -> Any:
    """Returns the function of a handler: it takes a request, or an iterator of them, and the call's context."""
    match handler.request_streaming, handler.response_streaming:
        case True, True:
            return handler.stream_stream
        case False, True:
            return handler.unary_stream
        case True, False:
            return handler.stream_unary
        case _:
            return handler.unary_unary


def with_behaviour(handler: Handler, behaviour: Any, parse: Callable[[bytes], Any] | None = None) -> Handler:
    """Makes a handler of the same kind with another function, and with another parser if one is given."""
    codecs = parse or handler.request_deserializer, handler.response_serializer
    match handler.request_streaming, handler.response_streaming:
        case True, True:
            return grpc.stream_stream_rpc_method_handler(behaviour, *codecs)
        case False, True:
            return grpc.unary_stream_rpc_method_handler(behaviour, *codecs)
        case True, False:
            return grpc.stream_unary_rpc_method_handler(behaviour, *codecs)
        case _:
            return grpc.unary_unary_rpc_method_handler(behaviour, *codecs)
