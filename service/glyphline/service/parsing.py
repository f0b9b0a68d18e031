"""What cannot be parsed is the caller's fault: gRPC would tell it as an unknown error of the server."""

# Handlers of any service pass through here: their messages have no type in common.
# ruff: noqa: ANN401

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError

from glyphline.service.boundary import Context, call_request_id, refuse
from glyphline.service.errors import RequestError
from glyphline.service.interceptors import Handler, WrappingInterceptor, behaviour_of, with_behaviour

__all__ = ["ParsingInterceptor"]

Message = TypeVar("Message")


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """Stands for a message that could not be parsed, until there is somebody to tell."""

    method: str

    @property
    def error(self) -> RequestError:
        return RequestError("request", f"the bytes are no message that {self.method} takes")


class ParsingInterceptor(WrappingInterceptor):
    """Refuses messages that cannot be parsed as invalid, in calls of every kind."""

    def wrap(self, path: str, handler: Handler) -> Handler:
        """Wraps the handler of a method."""
        method = path.rpartition("/")[2]
        guarded = _guarded(method, handler)
        return with_behaviour(handler, guarded, _careful(method, handler.request_deserializer))


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


def _guarded(method: str, handler: Handler) -> Any:
    """Wraps a handler; of many messages it meets the error where it would have met the message."""
    behaviour = behaviour_of(handler)

    async def answer(request: Any, context: Context) -> Any:
        if isinstance(request, _Unreadable):
            raise request.error
        answers = behaviour(_readable(request) if handler.request_streaming else request, context)
        if not handler.response_streaming or not hasattr(answers, "__aiter__"):
            return await answers
        async for each in answers:
            await context.write(each)
        return None

    async def handle(request: Any, context: Context) -> Any:
        try:
            return await answer(request, context)
        except (asyncio.CancelledError, grpc.aio.AbortError):
            raise
        except Exception as error:
            await refuse(context, method, call_request_id(context), error)

    return handle


async def _readable(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        if isinstance(request, _Unreadable):
            raise request.error
        yield request
