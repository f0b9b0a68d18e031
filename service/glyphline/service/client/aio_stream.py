"""A stream of the client for asyncio: images go out while outcomes come in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable

import grpc

from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
from glyphline.service.client.credentials import Metadata
from glyphline.service.client.errors import InvalidRequestError, is_send_failure
from glyphline.service.client.images import ImageInput, load_image
from glyphline.service.client.requests import sized_item
from glyphline.service.client.results import Outcome, read_outcome

__all__ = ["find_reason", "read_stream"]

_WAITING_OUTCOMES = 64


async def read_stream(
    recognition: rpc.RecognitionServiceAsyncStub,
    items: Iterable[tuple[str, ImageInput]] | AsyncIterable[tuple[str, ImageInput]],
    config: api.RecognitionConfig,
    timeout: float | None,
    metadata: Metadata,
    max_message_bytes: int,
) -> AsyncGenerator[tuple[str, Outcome]]:
    """Sends images as the server takes them, and yields each outcome as soon as it is there.

    Args:
        recognition: The service.
        items: Id and image of each.
        config: How all are read.
        timeout: Seconds for the whole stream; None for no limit.
        metadata: What goes with the call.
        max_message_bytes: Largest message.

    Yields:
        Id and outcome of each item.

    Raises:
        grpc.RpcError: If the stream as a whole fails.
    """
    failure: list[Exception] = []
    outcomes: asyncio.Queue[tuple[str, Outcome] | BaseException | None] = asyncio.Queue()
    places = asyncio.Semaphore(_WAITING_OUTCOMES)  # outcomes that nobody takes hold the server back

    async def requests() -> AsyncIterator[api.StreamingRecognizeRequest]:
        yield api.StreamingRecognizeRequest(config=config)
        try:
            async for item_id, image in _each(items):
                try:
                    content = await asyncio.to_thread(load_image, image)
                    item = sized_item(content, item_id, max_message_bytes)
                except InvalidRequestError as error:
                    await places.acquire()
                    outcomes.put_nowait((item_id, error))
                else:
                    yield api.StreamingRecognizeRequest(item=item)
        except Exception as error:
            failure.append(error)  # gRPC would tell the caller no more than that the call was cancelled
            call.cancel()

    async def receive() -> None:
        try:
            async for response in call:
                await places.acquire()
                outcomes.put_nowait((response.result.id, read_outcome(response.result)))
            outcomes.put_nowait(None)
        except (Exception, asyncio.CancelledError) as error:  # whoever waits for outcomes must hear of it
            outcomes.put_nowait(failure[0] if failure else error)

    call = recognition.StreamingRecognize(requests(), timeout=timeout, metadata=metadata)
    receiver = asyncio.create_task(receive())
    try:
        while (outcome := await outcomes.get()) is not None:
            if isinstance(outcome, BaseException):
                raise outcome
            places.release()
            yield outcome
    finally:
        call.cancel()
        receiver.cancel()
        await asyncio.wait({receiver})


async def find_reason(
    failure: grpc.RpcError,
    recognition: rpc.RecognitionServiceAsyncStub,
    config: api.RecognitionConfig,
    timeout: float,
    metadata: Metadata,
) -> grpc.RpcError:
    """Finds out why a stream failed, where gRPC says only that it could not send.

    gRPC's asyncio stack says so, and no more, whenever a call ends while there is more to send. A server that ends
    a stream does so for what is asked with all its items, and for that it refuses a call without items as well.

    Args:
        failure: What gRPC says.
        recognition: The service.
        config: How all items were to be read.
        timeout: Seconds that may be spent on it.
        metadata: What goes with the call.
    """
    if is_send_failure(failure) and timeout > 0:
        try:
            request = api.BatchRecognizeRequest(config=config)
            await recognition.BatchRecognize(request, timeout=timeout, metadata=metadata)
        except grpc.RpcError as reason:
            return reason
    return failure


async def _each(
    items: Iterable[tuple[str, ImageInput]] | AsyncIterable[tuple[str, ImageInput]],
) -> AsyncIterator[tuple[str, ImageInput]]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
