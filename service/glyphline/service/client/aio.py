"""The client for asyncio; it does what `Client` does, and awaits where that blocks."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Protocol, Self, TypeVar, cast

import grpc
from grpc_health.v1 import health_pb2

from glyphline.models.decoding.options import DecodingOptions
from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
from glyphline.service.client.aio_stream import find_reason, read_stream
from glyphline.service.client.credentials import Metadata as CallMetadata
from glyphline.service.client.credentials import bearer
from glyphline.service.client.errors import (
    ClientClosedError,
    InvalidRequestError,
    RecognitionError,
    UnavailableError,
    from_call,
)
from glyphline.service.client.images import ImageInput, load_image
from glyphline.service.client.requests import (
    HEALTH_CHECK,
    MAX_MESSAGE_BYTES,
    Priority,
    batches,
    channel_options,
    check_count,
    check_size,
    check_timeout,
    make_config,
    make_items,
    make_request,
    too_many,
)
from glyphline.service.client.results import (
    Evaluation,
    ModelInfo,
    Outcome,
    Result,
    read_evaluation,
    read_model,
    read_outcome,
    read_result,
)
from glyphline.service.client.retry import RetryPolicy, is_retryable

__all__ = ["AsyncClient"]

Request_contra = TypeVar("Request_contra", contravariant=True)
Response_co = TypeVar("Response_co", covariant=True)
Request = TypeVar("Request")
Response = TypeVar("Response")

_READY_POLL_SECONDS = 0.05


class _Method(Protocol[Request_contra, Response_co]):
    """A unary call of a stub."""

    def __call__(
        self, request: Request_contra, /, *, timeout: float | None, metadata: CallMetadata
    ) -> Awaitable[Response_co]: ...


class AsyncClient:
    """Asks a Glyphline server from asyncio code.

    ```python
    async with AsyncClient("localhost:50051") as client:
        print((await client.recognize(Path("strip.png"))).text)
    ```

    Args:
        target: Address of the server, `host:port`.
        timeout: Seconds that a call may take, retries included, unless the call says otherwise.
        retry: When a failed call is tried again.
        credentials: As `tls_credentials` makes them; None for a plain connection.
        token: The token that the server asks for. Without TLS it is refused, unless the server is on this machine.
        allow_token_without_tls: Whether a token may be sent in the clear all the same, as where a VPN or a proxy beside
            this program encrypts the way.
        server_name: The name in the server's certificate, where it is not that of its address.
        max_message_bytes: Largest message; the server has a limit of its own.
    """

    def __init__(
        self,
        target: str,
        *,
        timeout: float = 30.0,
        retry: RetryPolicy = RetryPolicy(),  # noqa: B008  (frozen)
        credentials: grpc.ChannelCredentials | None = None,
        token: str | None = None,
        allow_token_without_tls: bool = False,
        server_name: str | None = None,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
    ) -> None:
        self._metadata = bearer(token, target, hidden=credentials is not None or allow_token_without_tls)
        options = channel_options(max_message_bytes, server_name)
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(target, options)
        else:
            self._channel = grpc.aio.secure_channel(target, credentials, options)
        self._target = target
        self._closed = False
        self._timeout = check_timeout(timeout)
        self._retry = retry
        self._max_message_bytes = max_message_bytes
        # The class of the stubs is the same for both kinds of channel; only the types tell them apart.
        self._recognition = cast("rpc.RecognitionServiceAsyncStub", rpc.RecognitionServiceStub(self._channel))
        self._models = cast("rpc.ModelServiceAsyncStub", rpc.ModelServiceStub(self._channel))
        self._feedback = cast("rpc.FeedbackServiceAsyncStub", rpc.FeedbackServiceStub(self._channel))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connection; calls in progress fail."""
        self._closed = True
        await self._channel.close()

    async def wait_until_ready(self, timeout: float = 30.0) -> None:
        """Waits until the server can be used.

        Raises:
            UnavailableError: If it cannot be used in that time.
        """
        self._begin(timeout)
        check = self._channel.unary_unary(
            HEALTH_CHECK,
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while (remaining := deadline - loop.time()) > 0:
            try:
                answer = await check(health_pb2.HealthCheckRequest(), timeout=remaining, wait_for_ready=True)
            except grpc.RpcError:
                pass
            else:
                if answer.status == health_pb2.HealthCheckResponse.SERVING:
                    return
            await asyncio.sleep(min(_READY_POLL_SECONDS, max(0.0, deadline - loop.time())))
        raise UnavailableError(
            grpc.StatusCode.UNAVAILABLE, f"the server at {self._target} is not ready after {timeout:g} s"
        )

    async def recognize(
        self,
        image: ImageInput,
        *,
        model: str = "",
        version: int | str | None = None,
        options: DecodingOptions | None = None,
        priority: Priority = "normal",
        reference: str | None = None,
        request_id: str = "",
        timeout: float | None = None,
    ) -> Result:
        """Reads one image.

        Args:
            image: A file's bytes, a path, a Pillow image or an array.
            model: Name of the model; empty for the server's default.
            version: Its version, or a label; None for the latest.
            options: How to decode; None for the model's defaults.
            priority: Which waiting requests go first.
            reference: The true text, if known; the result then has an evaluation.
            request_id: A name for the request; empty for one that the server makes.
            timeout: Seconds; None for the client's own.

        Raises:
            RecognitionError: If it cannot be read.
            OptionsError: If what is asked could not be honoured.
            ClientClosedError: If the client was closed.
        """
        seconds = self._begin(timeout)
        config = make_config(model, version, options, priority)
        content = await asyncio.to_thread(load_image, image)
        request = make_request(content, config, reference, request_id)
        check_size(content, request, self._max_message_bytes)
        return read_result(await self._call(self._recognition.Recognize, request, seconds))

    async def recognize_many(
        self,
        images: Iterable[ImageInput],
        *,
        model: str = "",
        version: int | str | None = None,
        options: DecodingOptions | None = None,
        priority: Priority = "normal",
        references: Iterable[str | None] | None = None,
        timeout: float | None = None,
        batch_size: int = 32,
        parallel: int = 4,
    ) -> list[Outcome]:
        """Reads many images, several calls at a time; none is too many.

        Args:
            images: As in `recognize`; they are taken as they are needed.
            model: Name of the model; empty for the server's default.
            version: Its version, or a label; None for the latest.
            options: How to decode; None for the model's defaults.
            priority: Which waiting requests go first.
            references: The true text of each image, None where it is not known.
            timeout: Seconds for each call; None for the client's own.
            batch_size: Most images of a call. A server that takes fewer gets several calls instead.
            parallel: Most calls at a time.

        Returns:
            One result or error per image, in order. Nothing of the server is raised, nor that an input is no image.

        Raises:
            OptionsError: If what is asked could be honoured for no image.
            ClientClosedError: If the client was closed.
        """
        seconds = self._begin(timeout)
        check_count("batch_size", batch_size)
        check_count("parallel", parallel)
        config = make_config(model, version, options, priority)
        outcomes: list[Outcome] = []
        waiting: deque[asyncio.Task[list[Outcome]]] = deque()
        gathered = batches(make_items(images, references), max_images=batch_size, max_bytes=self._max_message_bytes)
        try:
            while (batch := await asyncio.to_thread(next, gathered, None)) is not None:
                if len(waiting) >= parallel:
                    outcomes += await waiting[0]
                    waiting.popleft()
                waiting.append(asyncio.create_task(self._read_batch(batch, config, seconds)))
            for task in waiting:
                outcomes += await task
        finally:
            for task in waiting:
                task.cancel()
        return outcomes

    async def stream(
        self,
        items: Iterable[tuple[str, ImageInput]] | AsyncIterable[tuple[str, ImageInput]],
        *,
        model: str = "",
        version: int | str | None = None,
        options: DecodingOptions | None = None,
        priority: Priority = "normal",
        timeout: float | None = None,
    ) -> AsyncIterator[tuple[str, Outcome]]:
        """Reads images as they come, and yields each outcome as soon as it is ready, in any order.

        Args:
            items: Id and image of each; taken as fast as the server reads.
            model: Name of the model; empty for the server's default.
            version: Its version, or a label; None for the latest.
            options: How to decode; None for the model's defaults.
            priority: Which waiting requests go first.
            timeout: Seconds for the whole stream; None for no limit.

        Yields:
            Id and outcome of each item.

        Raises:
            RecognitionError: If the stream as a whole fails. It is not tried again.
        """
        self._begin(timeout)
        loop = asyncio.get_running_loop()
        deadline = math.inf if timeout is None else loop.time() + timeout
        config = make_config(model, version, options, priority)
        stream = read_stream(self._recognition, items, config, timeout, self._metadata, self._max_message_bytes)
        try:
            async with aclosing(stream) as outcomes:
                async for outcome in outcomes:
                    yield outcome
        except grpc.RpcError as failure:
            seconds = min(deadline - loop.time(), self._timeout)
            reason = await find_reason(failure, self._recognition, config, seconds, self._metadata)
            raise from_call(reason, self._target, deadline - loop.time()) from failure

    async def list_models(self, *, timeout: float | None = None) -> list[ModelInfo]:
        """Lists the models of the server, by name and then version.

        Raises:
            RecognitionError: If the server does not answer.
        """
        models: list[ModelInfo] = []
        token = ""
        while True:
            page = await self._call(self._models.ListModels, api.ListModelsRequest(page_token=token), timeout)
            models += (read_model(model) for model in page.models)
            token = page.next_page_token
            if not token:
                return models

    async def get_model(
        self, name: str = "", version: int | str | None = None, *, timeout: float | None = None
    ) -> ModelInfo:
        """Describes one model.

        Raises:
            NotFoundError: If there is no such model.
        """
        request = api.GetModelRequest(name=name, version="" if version is None else str(version))
        return read_model((await self._call(self._models.GetModel, request, timeout)).model)

    async def submit_reference(self, request_id: str, reference: str, *, timeout: float | None = None) -> Evaluation:
        """Tells the server the true text of an earlier image, which it counts in its character error rate.

        Args:
            request_id: As in the metadata of the result.
            reference: The true text.
            timeout: Seconds; None for the client's own.

        Raises:
            NotFoundError: If the server does not remember the reading.
            RecognitionError: If the reading has been given another text.
        """
        request = api.SubmitReferenceRequest(request_id=request_id, reference_text=reference)
        response = await self._call(self._feedback.SubmitReference, request, timeout)
        return read_evaluation(response.evaluation)

    def _begin(self, timeout: float | None) -> float:
        """Returns the seconds that a call may take.

        Raises:
            ClientClosedError: If no call can be made any more.
            OptionsError: If the time is none.
        """
        if self._closed:
            raise ClientClosedError
        return self._timeout if timeout is None else check_timeout(timeout)

    async def _call(self, method: _Method[Request, Response], request: Request, timeout: float | None) -> Response:
        """Makes a unary call, again and again as far as the policy goes."""
        deadline = asyncio.get_running_loop().time() + self._begin(timeout)
        return await self._attempt(method, request, deadline)

    async def _attempt(self, method: _Method[Request, Response], request: Request, deadline: float) -> Response:
        loop = asyncio.get_running_loop()
        attempt = 1
        while not self._closed:
            try:
                remaining = max(0.0, deadline - loop.time())
                return await method(request, timeout=remaining, metadata=self._metadata)
            except grpc.RpcError as failure:
                remaining = deadline - loop.time()
                error = from_call(failure, self._target, remaining)
                pause = self._retry.pause(error, attempt, remaining)
                if pause is None:
                    raise error from failure
            await asyncio.sleep(pause)
            attempt += 1
        raise ClientClosedError

    async def _read_batch(
        self, batch: list[api.BatchItem] | RecognitionError, config: api.RecognitionConfig, timeout: float
    ) -> list[Outcome]:
        """Reads the images of one call, and again those that may succeed later."""
        if isinstance(batch, RecognitionError):
            return [batch]
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        outcomes: list[Outcome] = []

        async def read(items: Sequence[api.BatchItem]) -> list[Outcome]:
            request = api.BatchRecognizeRequest(items=items, config=config)
            try:
                response = await self._attempt(self._recognition.BatchRecognize, request, deadline)
            except InvalidRequestError as error:
                if not too_many(error, items):
                    raise
                half = len(items) // 2
                return await read(items[:half]) + await read(items[half:])
            return [read_outcome(result) for result in response.results]

        try:
            outcomes = await read(batch)
            attempt = 1
            while (pause := self._retry.batch_pause(outcomes, attempt, deadline - loop.time())) is not None:
                await asyncio.sleep(pause)
                attempt += 1
                again = [index for index, outcome in enumerate(outcomes) if is_retryable(outcome)]
                retried = await read([batch[index] for index in again])
                for index, outcome in zip(again, retried, strict=True):
                    outcomes[index] = outcome
        except RecognitionError as error:
            return [error if is_retryable(outcome) else outcome for outcome in outcomes] or [error] * len(batch)
        return outcomes
