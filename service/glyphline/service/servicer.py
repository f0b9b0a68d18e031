"""RecognitionService: converts messages, and lets the pipeline do the rest."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from glyphline.models.errors import GlyphlineError
from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
from glyphline.service import conversion
from glyphline.service.admission import ReadConfig, ReadRequest
from glyphline.service.boundary import CallerGoneError, Context, call_deadline, call_request_id, guard, log_failure
from glyphline.service.errors import InternalError, RequestError
from glyphline.service.metrics import Metrics
from glyphline.service.pipeline import Answer, Pipeline
from glyphline.service.security import client_of

__all__ = ["RecognitionServicer"]

_LONGEST_TURN_SECONDS = 0.005


class RecognitionServicer(rpc.RecognitionServiceServicer):
    """Reads images.

    Args:
        pipeline: Reads them.
        metrics: Where the time to build a reply is recorded.
        max_request_images: Most items of a batch.
        max_stream_images: Most items of a stream in progress.
    """

    def __init__(
        self, pipeline: Pipeline, metrics: Metrics, *, max_request_images: int, max_stream_images: int
    ) -> None:
        self._pipeline = pipeline
        self._metrics = metrics
        self._max_request_images = max_request_images
        self._max_stream_images = max_stream_images

    async def Recognize(self, request: api.RecognizeRequest, context: Context) -> api.RecognizeResponse:
        """Reads one image."""
        request_id = request.request_id or call_request_id(context)
        return await guard(context, "Recognize", request_id, self._recognize(request, request_id, context))

    async def BatchRecognize(self, request: api.BatchRecognizeRequest, context: Context) -> api.BatchRecognizeResponse:
        """Reads several images."""
        return await guard(context, "BatchRecognize", "", self._batch_recognize(request, context))

    async def StreamingRecognize(  # type: ignore[override]  # it writes its answers rather than yielding them
        self, request_iterator: AsyncIterator[api.StreamingRecognizeRequest], context: Context
    ) -> None:
        """Reads a stream of images."""
        await guard(context, "StreamingRecognize", "", self._streaming_recognize(request_iterator, context))

    async def _recognize(
        self, request: api.RecognizeRequest, request_id: str, context: Context
    ) -> api.RecognizeResponse:
        deadline = call_deadline(context)
        answer = await self._pipeline.read(_request(request, request_id), client_of(context), deadline)
        began = time.perf_counter()
        response = conversion.response_message(answer)
        self._metrics.observe_encoding(time.perf_counter() - began)
        return response

    async def _batch_recognize(
        self, request: api.BatchRecognizeRequest, context: Context
    ) -> api.BatchRecognizeResponse:
        deadline = call_deadline(context)
        if len(request.items) > self._max_request_images:
            raise RequestError("items", f"must be at most {self._max_request_images}, not {len(request.items)}")
        config = self._config(request.config)
        request_ids = [item.request_id or conversion.new_request_id() for item in request.items]
        requests = [
            _item_request(item, request_id, config) for item, request_id in zip(request.items, request_ids, strict=True)
        ]
        answers = await self._pipeline.read_all(requests, client_of(context), deadline)
        spent = 0.0
        response = api.BatchRecognizeResponse()
        for item, request_id, answer in zip(request.items, request_ids, answers, strict=True):
            began = time.perf_counter()
            response.results.append(self._result("BatchRecognize", item.id, request_id, answer))
            spent += time.perf_counter() - began
            if spent > _LONGEST_TURN_SECONDS:  # many alternatives of many images take long: others have their turn
                await asyncio.sleep(0)
        self._metrics.observe_encoding(spent)
        return response

    async def _streaming_recognize(
        self, messages: AsyncIterator[api.StreamingRecognizeRequest], context: Context
    ) -> None:
        """Reads items as they come, and answers each as soon as it is read."""
        config: ReadConfig | None = None
        places = asyncio.Semaphore(self._max_stream_images)
        writing = asyncio.Lock()
        answering: set[asyncio.Task[None]] = set()

        async def answer(item: api.BatchItem, config: ReadConfig) -> None:
            try:
                response = await self._stream_response(item, config, context)
                async with writing:
                    await context.write(response)
            except CallerGoneError as failure:
                raise asyncio.CancelledError from failure
            finally:
                places.release()

        try:
            async for message in messages:
                kind = message.WhichOneof("request")
                if kind == "config":
                    config = self._config(message.config)
                elif kind is None:
                    raise RequestError("request", "must be a config or an item")
                elif config is None:
                    raise RequestError("request", "the first message of a stream must be a config")
                else:
                    await places.acquire()  # not reading on is what holds a fast client back
                    task = asyncio.create_task(answer(message.item, config))
                    answering.add(task)
                    task.add_done_callback(answering.discard)
            await asyncio.gather(*answering)
        finally:
            for task in answering:
                task.cancel()
            await asyncio.gather(*answering, return_exceptions=True)

    async def _stream_response(
        self, item: api.BatchItem, config: ReadConfig, context: Context
    ) -> api.StreamingRecognizeResponse:
        request_id = item.request_id or conversion.new_request_id()
        try:
            request = _item_request(item, request_id, config)
            (answer,) = await self._pipeline.read_all([request], client_of(context), call_deadline(context))
        except GlyphlineError as error:
            answer = error
        except Exception as error:
            log_failure(error, "StreamingRecognize", request_id)
            answer = InternalError("the item failed")
        began = time.perf_counter()
        result = self._result("StreamingRecognize", item.id, request_id, answer)
        self._metrics.observe_encoding(time.perf_counter() - began)
        return api.StreamingRecognizeResponse(result=result)

    def _config(self, message: api.RecognitionConfig) -> ReadConfig:
        """Converts and checks the configuration of a batch or stream, whose fault is one of the whole call."""
        config = conversion.read_config(message)
        self._pipeline.admission.check_config(config)
        return config

    def _result(
        self, method: str, item_id: str, request_id: str, answer: Answer | GlyphlineError
    ) -> api.BatchItemResult:
        if not isinstance(answer, Answer):
            log_failure(answer, method, request_id)
        return conversion.result_message(item_id, request_id, answer)


def _request(request: api.RecognizeRequest, request_id: str) -> ReadRequest | GlyphlineError:
    """Converts a request; one that cannot be converted is counted and refused like an image that cannot be read."""
    try:
        return conversion.read_request(request, request_id)
    except GlyphlineError as error:
        return error


def _item_request(item: api.BatchItem, request_id: str, config: ReadConfig) -> ReadRequest | GlyphlineError:
    """Converts an item; an item that cannot be converted fails alone."""
    try:
        return conversion.read_item(item, request_id, config)
    except GlyphlineError as error:
        return error
