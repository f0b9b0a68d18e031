"""How a server closes without breaking off a call that has just arrived.

gRPC cancels, without a reason, whatever lies between its core and its handlers in the instant in which it stops. That
instant is made a quiet one:

    refusing   while the calls in progress are answered, new ones are refused at once, with a hint to try elsewhere
    holding    then new calls are let in and held until none arrive any more: a caller that waits sends nothing
    closed     the server stops, which tells every connection to send nothing more; only then the held calls are refused
"""

# Handlers of any service pass through here: their messages have no type in common.
# ruff: noqa: ANN401

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from glyphline.service.boundary import Context, guard
from glyphline.service.errors import NotReadyError
from glyphline.service.metrics import Metrics

__all__ = ["ClosingInterceptor"]

_TURN_SECONDS = 0.02
_QUIET_TURNS = 10  # of the event loop, one after the other, in which no call arrives
_LONGEST_HOLD_SECONDS = 2.0
_NOTICE_SECONDS = 0.1  # for word of the end to reach clients
_LEAST_GRACE_SECONDS = 1.0  # for the held calls to be refused in


class ClosingInterceptor(grpc.aio.ServerInterceptor):
    """Lets calls through until the server closes. It must be the first of the interceptors.

    Args:
        metrics: Where refusals are counted.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._closing = False
        self._arrived = 0
        self._let_go = asyncio.Event()  # whoever is to be refused need not wait
        self._let_go.set()
        # It reads nothing and answers nothing, so that it can stand for a method of any kind.
        self._refusal: grpc.RpcMethodHandler[Any, Any] = grpc.stream_stream_rpc_method_handler(self._refuse)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Returns the method's handler, or once the server closes what refuses the call."""
        if not self._closing:
            return await continuation(handler_call_details)
        self._arrived += 1
        return self._refusal

    async def close(
        self, stop: Callable[[float], Awaitable[None]], in_progress: Callable[[], int], *, grace_seconds: float
    ) -> None:
        """Closes the server, and returns when it has stopped.

        Args:
            stop: Stops it, and gives calls in progress so many seconds.
            in_progress: Tells how many calls are being answered.
            grace_seconds: How long calls in progress may take.
        """
        loop = asyncio.get_running_loop()
        self._closing = True
        latest = loop.time() + grace_seconds
        while in_progress() and loop.time() < latest:
            await asyncio.sleep(_TURN_SECONDS)
        self._let_go.clear()
        await self._quiet()
        stopping = asyncio.ensure_future(stop(0.0 if in_progress() else _LEAST_GRACE_SECONDS))
        await asyncio.sleep(_NOTICE_SECONDS)
        self._let_go.set()
        await stopping

    async def _quiet(self) -> None:
        """Waits until no calls arrive. It counts turns and not time: what has arrived may be waiting for its turn."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + _LONGEST_HOLD_SECONDS
        turns, seen = 0, self._arrived
        while turns < _QUIET_TURNS and loop.time() < latest:
            await asyncio.sleep(_TURN_SECONDS)
            turns, seen = (turns + 1 if self._arrived == seen else 0), self._arrived

    async def _refuse(self, requests: Any, context: Context) -> None:
        del requests
        await self._let_go.wait()
        error = NotReadyError("the server is stopping")
        self._metrics.count_call_refusal(error)
        await guard(context, "", "", _raise(error))


async def _raise(error: Exception) -> None:
    raise error
