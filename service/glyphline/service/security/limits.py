"""Holds callers to what their tokens allow, and ends streams that nothing comes from."""

# Handlers of several methods pass through here: their messages have no type in common.
# ruff: noqa: ANN401

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.service.boundary import Context
from glyphline.service.errors import IdleStreamError, PermissionDeniedError, RateError, ServiceError
from glyphline.service.interceptors import Handler, WrappingInterceptor, behaviour_of, with_behaviour
from glyphline.service.metrics import Metrics
from glyphline.service.security.callers import GRANT
from glyphline.service.security.tokens import Grant

__all__ = ["Allowance", "LimitsInterceptor"]

_READING = "/glyphline.recognition.v1.RecognitionService/"


class Allowance:
    """A bucket that fills at a rate and holds one second of it.

    Whoever finds anything in it may take all that he needs, and leaves a debt that is filled first: so the rate holds
    over time, and one batch may still be larger than a second of it.

    Args:
        clock: Tells the time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._rate = 0.0
        self._level = 0.0
        self._at = clock()

    def wait(self, rate: float) -> float:
        """Returns in how many seconds something may be taken; 0 for now.

        Args:
            rate: How much comes in a second; it may change from call to call.
        """
        now = self._clock()
        room = max(rate, 1.0)
        filled = room if not self._rate else self._level + (now - self._at) * self._rate
        self._level, self._rate, self._at = min(room, filled), rate, now
        return 0.0 if self._level > 0 else max(1e-3, -self._level / rate)

    def take(self, amount: float) -> None:
        """Takes an amount, and more than there is if need be."""
        self._level -= amount


class LimitsInterceptor(WrappingInterceptor):
    """Watches what comes in with the calls that read images. It must be the last of the interceptors.

    A call that exceeds a rate is refused, with the time after which it may be tried again; a stream is not refused but
    read no further until then, which holds its client back.

    Args:
        metrics: Where refusals are counted.
        idle_seconds: How long a stream may send nothing.
        clock: Tells the time in seconds.
    """

    def __init__(self, metrics: Metrics, *, idle_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._metrics = metrics
        self._idle_seconds = idle_seconds
        self._clock = clock
        # By names of tokens, of which there are as many as there are lines in a file.
        self._images: dict[str, Allowance] = {}
        self._bytes: dict[str, Allowance] = {}

    def wrap(self, path: str, handler: Handler) -> Handler:
        """Wraps the handler of a method that reads images."""
        if not path.startswith(_READING):
            return handler
        behaviour = behaviour_of(handler)

        async def read(request: Any, context: Context) -> Any:
            self._check(request)
            return await behaviour(request, context)

        async def read_stream(requests: Any, context: Context) -> Any:
            return await behaviour(self._watched(requests), context)

        return with_behaviour(handler, read_stream if handler.request_streaming else read)

    def check_call(self, images: int, size: int, *, has_truth: bool) -> None:
        """Refuses a call that is not allowed, and counts what it takes: for services whose messages only they can tell.

        Args:
            images: How many images it has.
            size: Their bytes.
            has_truth: Whether it has a true text.

        Raises:
            PermissionDeniedError: If the token is for reading only, and the request has a true text.
            RateError: If the token has taken all that it may for the moment.
        """
        grant = GRANT.get()
        if grant is None:
            return
        self._check_truth(grant, has_truth)
        if pause := self._pause(grant):
            raise self._counted(RateError(f"the token {grant.name} has taken all that it may for now", pause))
        self._take(grant, images, size)

    def _check(self, request: api.RecognizeRequest | api.BatchRecognizeRequest) -> None:
        """Checks a call like `check_call`."""
        if GRANT.get() is not None:
            items = request.items if isinstance(request, api.BatchRecognizeRequest) else [request]
            self.check_call(len(items), _size(items), has_truth=_has_truth(items))

    async def _watched(
        self, messages: AsyncIterator[api.StreamingRecognizeRequest]
    ) -> AsyncIterator[api.StreamingRecognizeRequest]:
        """Passes messages on, as fast as the token allows.

        Raises:
            PermissionDeniedError: If the token is for reading only, and a message has a true text.
            IdleStreamError: If no message comes for too long.
        """
        grant = GRANT.get()
        remaining = aiter(messages)
        while True:
            try:
                async with asyncio.timeout(self._idle_seconds):
                    message = await anext(remaining)
            except StopAsyncIteration:
                return
            except TimeoutError:
                problem = IdleStreamError(f"nothing came in the stream for {self._idle_seconds:g} s")
                raise self._counted(problem) from None
            if grant is not None and message.WhichOneof("request") == "item":
                items = [message.item]
                self._check_truth(grant, _has_truth(items))
                while pause := self._pause(grant):
                    await asyncio.sleep(pause)
                self._take(grant, len(items), _size(items))
            yield message

    def _check_truth(self, grant: Grant, has_truth: bool) -> None:
        if grant.read_only and has_truth:
            raise self._counted(PermissionDeniedError("the token may read, and not hand in true texts"))

    def _pause(self, grant: Grant) -> float:
        """Returns how long the token must wait; 0 if it need not."""
        pause = 0.0
        for rate, allowances in self._rates(grant):
            if rate is not None:
                pause = max(pause, allowances.setdefault(grant.name, Allowance(self._clock)).wait(rate))
        return pause

    def _take(self, grant: Grant, images: int, size: int) -> None:
        for amount, (rate, allowances) in zip((images, size), self._rates(grant), strict=True):
            if rate is not None:
                allowances[grant.name].take(amount)

    def _rates(self, grant: Grant) -> list[tuple[float | None, dict[str, Allowance]]]:
        return [(grant.images_per_second, self._images), (grant.bytes_per_second, self._bytes)]

    def _counted(self, error: ServiceError) -> ServiceError:
        self._metrics.count_call_refusal(error)
        return error


def _size(items: Any) -> int:
    return sum(len(item.image.content) for item in items)


def _has_truth(items: Any) -> bool:
    return any(item.HasField("reference_text") for item in items)
