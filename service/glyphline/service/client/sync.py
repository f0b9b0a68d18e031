"""The client for plain code."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Protocol, Self, TypeVar

import grpc
from grpc_health.v1 import health_pb2

from glyphline.models.decoding.options import DecodingOptions
from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
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
from glyphline.service.client.sync_stream import read_stream

__all__ = ["Client"]

Request_contra = TypeVar("Request_contra", contravariant=True)
Response_co = TypeVar("Response_co", covariant=True)
Request = TypeVar("Request")
Response = TypeVar("Response")

_READY_POLL_SECONDS = 0.05


class _Method(Protocol[Request_contra, Response_co]):
    """A unary call of a stub."""

    def __call__(self, request: Request_contra, /, *, timeout: float | None, metadata: CallMetadata) -> Response_co: ...


class Client:
    """Asks a Glyphline server. One client may be used from several threads at once.

    ```python
    with Client("localhost:50051") as client:
        print(client.recognize(Path("strip.png")).text)
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
            self._channel = grpc.insecure_channel(target, options)
        else:
            self._channel = grpc.secure_channel(target, credentials, options)
        self._target = target
        self._closed = False
        self._timeout = check_timeout(timeout)
        self._retry = retry
        self._max_message_bytes = max_message_bytes
        self._recognition = rpc.RecognitionServiceStub(self._channel)
        self._models = rpc.ModelServiceStub(self._channel)
        self._feedback = rpc.FeedbackServiceStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; calls in progress fail."""
        self._closed = True
        self._channel.close()

    def wait_until_ready(self, timeout: float = 30.0) -> None:
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
        deadline = time.monotonic() + timeout
        while (remaining := deadline - time.monotonic()) > 0:
            try:
                answer = check(health_pb2.HealthCheckRequest(), timeout=remaining, wait_for_ready=True)
            except grpc.RpcError:
                pass
            else:
                if answer.status == health_pb2.HealthCheckResponse.SERVING:
                    return
            time.sleep(min(_READY_POLL_SECONDS, max(0.0, deadline - time.monotonic())))
        raise UnavailableError(
            grpc.StatusCode.UNAVAILABLE, f"the server at {self._target} is not ready after {timeout:g} s"
        )

    def recognize(
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
        content = load_image(image)
        request = make_request(content, config, reference, request_id)
        check_size(content, request, self._max_message_bytes)
        return read_result(self._call(self._recognition.Recognize, request, seconds))

    def recognize_many(
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
        waiting: deque[Future[list[Outcome]]] = deque()
        items = make_items(images, references)
        with ThreadPoolExecutor(parallel, thread_name_prefix="glyphline-client") as pool:
            for batch in batches(items, max_images=batch_size, max_bytes=self._max_message_bytes):
                if len(waiting) >= 2 * parallel:
                    outcomes += waiting.popleft().result()
                waiting.append(pool.submit(self._read_batch, batch, config, seconds))
            for future in waiting:
                outcomes += future.result()
        return outcomes

    def stream(
        self,
        items: Iterable[tuple[str, ImageInput]],
        *,
        model: str = "",
        version: int | str | None = None,
        options: DecodingOptions | None = None,
        priority: Priority = "normal",
        timeout: float | None = None,
    ) -> Iterator[tuple[str, Outcome]]:
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
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        config = make_config(model, version, options, priority)
        try:
            yield from read_stream(self._recognition, items, config, timeout, self._metadata, self._max_message_bytes)
        except grpc.RpcError as failure:
            raise from_call(failure, self._target, deadline - time.monotonic()) from failure

    def list_models(self, *, timeout: float | None = None) -> list[ModelInfo]:
        """Lists the models of the server, by name and then version.

        Raises:
            RecognitionError: If the server does not answer.
        """
        models: list[ModelInfo] = []
        token = ""
        while True:
            page = self._call(self._models.ListModels, api.ListModelsRequest(page_token=token), timeout)
            models += (read_model(model) for model in page.models)
            token = page.next_page_token
            if not token:
                return models

    def get_model(self, name: str = "", version: int | str | None = None, *, timeout: float | None = None) -> ModelInfo:
        """Describes one model.

        Raises:
            NotFoundError: If there is no such model.
        """
        request = api.GetModelRequest(name=name, version="" if version is None else str(version))
        return read_model(self._call(self._models.GetModel, request, timeout).model)

    def submit_reference(self, request_id: str, reference: str, *, timeout: float | None = None) -> Evaluation:
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
        return read_evaluation(self._call(self._feedback.SubmitReference, request, timeout).evaluation)

    def _begin(self, timeout: float | None) -> float:
        """Returns the seconds that a call may take.

        Raises:
            ClientClosedError: If no call can be made any more.
            OptionsError: If the time is none.
        """
        if self._closed:
            raise ClientClosedError
        return self._timeout if timeout is None else check_timeout(timeout)

    def _call(self, method: _Method[Request, Response], request: Request, timeout: float | None) -> Response:
        """Makes a unary call, again and again as far as the policy goes."""
        deadline = time.monotonic() + self._begin(timeout)
        return self._attempt(method, request, deadline)

    def _attempt(self, method: _Method[Request, Response], request: Request, deadline: float) -> Response:
        attempt = 1
        while not self._closed:
            try:
                remaining = max(0.0, deadline - time.monotonic())
                return method(request, timeout=remaining, metadata=self._metadata)
            except grpc.RpcError as failure:
                remaining = deadline - time.monotonic()
                error = from_call(failure, self._target, remaining)
                pause = self._retry.pause(error, attempt, remaining)
                if pause is None:
                    raise error from failure
            time.sleep(pause)
            attempt += 1
        raise ClientClosedError

    def _read_batch(
        self, batch: list[api.BatchItem] | RecognitionError, config: api.RecognitionConfig, timeout: float
    ) -> list[Outcome]:
        """Reads the images of one call, and again those that may succeed later."""
        if isinstance(batch, RecognitionError):
            return [batch]
        deadline = time.monotonic() + timeout
        outcomes: list[Outcome] = []

        def read(items: Sequence[api.BatchItem]) -> list[Outcome]:
            request = api.BatchRecognizeRequest(items=items, config=config)
            try:
                response = self._attempt(self._recognition.BatchRecognize, request, deadline)
            except InvalidRequestError as error:
                if not too_many(error, items):
                    raise
                half = len(items) // 2
                return read(items[:half]) + read(items[half:])
            return [read_outcome(result) for result in response.results]

        try:
            outcomes = read(batch)
            attempt = 1
            while (pause := self._retry.batch_pause(outcomes, attempt, deadline - time.monotonic())) is not None:
                time.sleep(pause)
                attempt += 1
                again = [index for index, outcome in enumerate(outcomes) if is_retryable(outcome)]
                for index, outcome in zip(again, read([batch[index] for index in again]), strict=True):
                    outcomes[index] = outcome
        except RecognitionError as error:
            return [error if is_retryable(outcome) else outcome for outcome in outcomes] or [error] * len(batch)
        return outcomes
