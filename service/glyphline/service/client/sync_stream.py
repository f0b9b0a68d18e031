"""A stream of the client for plain code: images go out while outcomes come in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from threading import Event, Semaphore, Thread

from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
from glyphline.service.client.credentials import Metadata
from glyphline.service.client.errors import InvalidRequestError
from glyphline.service.client.images import ImageInput, load_image
from glyphline.service.client.requests import sized_item
from glyphline.service.client.results import Outcome, read_outcome

__all__ = ["read_stream"]

_WAITING_OUTCOMES = 64


def read_stream(
    recognition: rpc.RecognitionServiceStub,
    items: Iterable[tuple[str, ImageInput]],
    config: api.RecognitionConfig,
    timeout: float | None,
    metadata: Metadata,
    max_message_bytes: int,
) -> Iterator[tuple[str, Outcome]]:
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
    outcomes: SimpleQueue[tuple[str, Outcome] | Exception | None] = SimpleQueue()
    ended = Event()
    places = Semaphore(_WAITING_OUTCOMES)  # outcomes that nobody takes hold the server back

    def requests() -> Iterator[api.StreamingRecognizeRequest]:
        yield api.StreamingRecognizeRequest(config=config)
        try:
            for item_id, image in items:
                try:
                    item = sized_item(load_image(image), item_id, max_message_bytes)
                except InvalidRequestError as error:
                    places.acquire()
                    outcomes.put((item_id, error))
                    if ended.is_set():
                        return
                else:
                    yield api.StreamingRecognizeRequest(item=item)
        except Exception as error:
            failure.append(error)  # gRPC would tell the caller no more than that the call was cancelled
            call.cancel()

    def receive() -> None:
        try:
            for response in call:
                places.acquire()
                outcomes.put((response.result.id, read_outcome(response.result)))
            outcomes.put(None)
        except Exception as error:  # whatever it is, whoever waits for outcomes must hear of it
            outcomes.put(failure[0] if failure else error)

    call = recognition.StreamingRecognize(requests(), timeout=timeout, metadata=metadata)
    receiver = Thread(target=receive, name="glyphline-stream", daemon=True)
    receiver.start()
    try:
        while (outcome := outcomes.get()) is not None:
            if isinstance(outcome, Exception):
                raise outcome
            places.release()
            yield outcome
    finally:
        ended.set()
        call.cancel()
        places.release(2)  # whoever waits for one sees that the call has ended
        receiver.join()
