"""How an image is sent to each kind of server that `servers.py` compares: one class for each protocol.

Libraries of the peers are imported only by the class that needs them.
"""

from __future__ import annotations

import asyncio
import base64
import importlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, cast

import grpc

from glyphline.recognition.v1 import recognition_pb2 as messages
from glyphline.recognition.v1 import recognition_pb2_grpc as services

TIMED_OUT = "DEADLINE_EXCEEDED"
HTTP_CODES = {408: TIMED_OUT, 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE", 504: TIMED_OUT}


class CallError(Exception):
    """A call was not answered with a text.

    Attributes:
        code: Name of a gRPC status code, or of what comes nearest to one.
    """

    def __init__(self, code: str, details: str | None = None) -> None:
        """Keeps the code; the message is what the server said."""
        super().__init__(f"{code}: {details}" if details else code)
        self.code = code


class Caller(ABC):
    """Sends images to one server; a cancelled task cancels its call."""

    async def __aenter__(self) -> Self:
        """Returns the caller."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the connections."""
        await self.close()

    @abstractmethod
    async def read(self, index: int, timeout: float) -> str:
        """Has an image read.

        Raises:
            CallError: If the server refuses, fails or takes longer than `timeout` seconds.
        """

    @abstractmethod
    async def close(self) -> None:
        """Closes the connections."""


class GlyphlineCaller(Caller):
    """Glyphline's own call, which Ray Serve's gRPC proxy takes too."""

    def __init__(self, target: str, model: str, contents: Sequence[bytes]) -> None:
        """Prepares a request for each image."""
        self._channel = grpc.aio.insecure_channel(target)
        # The generated class serves both kinds of channel; only its type stub tells them apart.
        self._stub = cast("services.RecognitionServiceAsyncStub", services.RecognitionServiceStub(self._channel))
        config = messages.RecognitionConfig(model=model)
        config.greedy.SetInParent()
        self._requests = [
            messages.RecognizeRequest(image=messages.Image(content=content), config=config) for content in contents
        ]

    async def read(self, index: int, timeout: float) -> str:
        """Has an image read."""
        try:
            response = await self._stub.Recognize(self._requests[index], timeout=timeout)
        except grpc.aio.AioRpcError as error:
            raise CallError(error.code().name, error.details()) from error
        return response.alternatives[0].text

    async def close(self) -> None:
        """Closes the channel."""
        await self._channel.close()


class InferenceCaller(Caller):
    """The Open Inference Protocol over gRPC, with MLServer's own messages."""

    def __init__(self, target: str, model: str, contents: Sequence[bytes]) -> None:
        """Prepares a request for each image."""
        self._channel = grpc.aio.insecure_channel(target)
        inference: Any = importlib.import_module("mlserver.grpc.dataplane_pb2")
        stubs: Any = importlib.import_module("mlserver.grpc.dataplane_pb2_grpc")
        self._stub = stubs.GRPCInferenceServiceStub(self._channel)
        tensor = inference.ModelInferRequest.InferInputTensor
        self._requests = [
            inference.ModelInferRequest(
                model_name=model,
                inputs=[
                    tensor(
                        name="image",
                        datatype="BYTES",
                        shape=[1],
                        contents=inference.InferTensorContents(bytes_contents=[content]),
                    )
                ],
            )
            for content in contents
        ]

    async def read(self, index: int, timeout: float) -> str:
        """Has an image read."""
        try:
            response = await self._stub.ModelInfer(self._requests[index], timeout=timeout)
        except grpc.aio.AioRpcError as error:
            raise CallError(error.code().name, error.details()) from error
        return bytes(response.outputs[0].contents.bytes_contents[0]).decode()

    async def close(self) -> None:
        """Closes the channel."""
        await self._channel.close()


class HttpCaller(Caller):
    """JSON over HTTP, with connections that are kept."""

    def __init__(self, target: str, model: str, contents: Sequence[bytes]) -> None:
        """Prepares a request for each image; the server has but one model."""
        self._http: Any = importlib.import_module("aiohttp")
        self._session = self._http.ClientSession(
            connector=self._http.TCPConnector(limit=0), headers={"Content-Type": "application/json"}
        )
        self._url = f"http://{target}/predict"
        self._bodies = [json.dumps({"image": base64.b64encode(content).decode()}).encode() for content in contents]

    async def read(self, index: int, timeout: float) -> str:
        """Has an image read."""
        try:
            limit = self._http.ClientTimeout(total=timeout)
            async with self._session.post(self._url, data=self._bodies[index], timeout=limit) as response:
                if response.status != 200:
                    raise CallError(HTTP_CODES.get(response.status, f"HTTP {response.status}"))
                return str((await response.json())["text"])
        except asyncio.TimeoutError as error:  # noqa: UP041  (aiohttp's is a subclass of both)
            raise CallError(TIMED_OUT) from error
        except self._http.ClientError as error:
            raise CallError("UNAVAILABLE") from error

    async def close(self) -> None:
        """Closes the connections."""
        await self._session.close()


CALLERS: dict[str, type[Any]] = {"glyphline": GlyphlineCaller, "inference": InferenceCaller, "http": HttpCaller}
"""Protocol → what speaks it; each is made of a target, a model and the images."""
