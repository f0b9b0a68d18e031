"""What cannot be parsed is the caller's fault: gRPC would tell it as an unknown error of the server."""

# Handlers of any service pass through here: their messages have no type in common.
# ruff: noqa: ANN401

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError

from glyphline.service.boundary import Context, guard
from glyphline.service.errors import RequestError

__all__ = ["ParsingInterceptor"]

Message = TypeVar("Message")


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """Stands for a message that could not be parsed, until there is somebody to tell."""

    method: str

    @property
    def error(self) -> RequestError:
        return RequestError("request", f"the bytes are no message that {self.method} takes")


class ParsingInterceptor(grpc.aio.ServerInterceptor):
    """Refuses messages that cannot be parsed as invalid, in calls of every kind."""

    def __init__(self) -> None:
        self._wrapped: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}  # by path; only of methods that there are

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Returns the method's handler, wrapped; the wrapping is made once."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        path = handler_call_details.method
        if path not in self._wrapped:
            self._wrapped[path] = _wrap(path.rpartition("/")[2], handler)
        return self._wrapped[path]


def _wrap(method: str, handler: grpc.RpcMethodHandler[Any, Any]) -> grpc.RpcMethodHandler[Any, Any]:
    parse = _careful(method, handler.request_deserializer)
    codecs = parse, handler.response_serializer
    match handler.request_streaming, handler.response_streaming:
        case True, True:
            return grpc.stream_stream_rpc_method_handler(_guarded(method, handler.stream_stream), *codecs)
        case False, True:
            return grpc.unary_stream_rpc_method_handler(_guarded(method, handler.unary_stream), *codecs)
        case True, False:
            return grpc.stream_unary_rpc_method_handler(_guarded(method, handler.stream_unary), *codecs)
        case _:
            return grpc.unary_unary_rpc_method_handler(_guarded(method, handler.unary_unary), *codecs)


def _careful(method: str, parse: Callable[[bytes], Message] | None) -> Callable[[bytes], Message | _Unreadable] | None:
    """Wraps what parses a message."""
    if parse is None:
        return None

    def parse_or_mark(content: bytes) -> Message | _Unreadable:
        try:
            return parse(content)
        except DecodeError:
            return _Unreadable(method)

    return parse_or_mark


def _guarded(method: str, behaviour: Any) -> Any:
    """Wraps a handler; of many messages it meets the error where it would have met the message."""

    async def answer(request: Any, context: Context) -> Any:
        if isinstance(request, _Unreadable):
            raise request.error
        answers = behaviour(_readable(request) if hasattr(request, "__aiter__") else request, context)
        if not hasattr(answers, "__aiter__"):
            return await answers
        async for each in answers:
            await context.write(each)
        return None

    async def handle(request: Any, context: Context) -> Any:
        return await guard(context, method, "", answer(request, context))

    return handle


async def _readable(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        if isinstance(request, _Unreadable):
            raise request.error
        yield request
