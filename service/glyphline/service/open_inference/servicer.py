"""GRPCInferenceService: takes tensors apart, lets the pipeline do the rest, and answers in tensors."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from glyphline.models.errors import GlyphlineError, OptionsError
from glyphline.open_inference.v2 import open_inference_pb2 as api
from glyphline.open_inference.v2 import open_inference_pb2_grpc as rpc
from glyphline.service.admission import ReadConfig
from glyphline.service.boundary import Context, call_deadline, call_request_id, guard, log_failure
from glyphline.service.catalogue import Catalogue, ServedModel
from glyphline.service.errors import RequestError, UnknownModelError
from glyphline.service.metrics import Metrics
from glyphline.service.open_inference.answers import answer_message
from glyphline.service.open_inference.descriptions import (
    config_message,
    index_message,
    metadata_message,
    server_message,
    statistics_message,
)
from glyphline.service.open_inference.parameters import Parameters
from glyphline.service.open_inference.requests import Asked, read_message, request_ids, requests_of
from glyphline.service.open_inference.statistics import Statistics
from glyphline.service.pipeline import Pipeline
from glyphline.service.security import client_of
from glyphline.service.settings import ServerSettings

__all__ = ["Limits", "OpenInferenceServicer"]


class Limits(Protocol):
    """What callers may take."""

    def check_call(self, images: int, size: int, *, has_truth: bool) -> None:
        """Counts what a call takes.

        Raises:
            ServiceError: If its caller may not have it.
        """


class OpenInferenceServicer(rpc.GRPCInferenceServiceServicer):
    """Reads images for clients of the Open Inference Protocol.

    Args:
        pipeline: Reads them.
        catalogue: The models.
        statistics: What the models have read.
        metrics: What is counted.
        limits: What callers may take.
        settings: How the server serves.
        ready: Whether the server takes requests.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        catalogue: Catalogue,
        statistics: Statistics,
        metrics: Metrics,
        *,
        limits: Limits,
        settings: ServerSettings,
        ready: Callable[[], bool],
    ) -> None:
        self._pipeline = pipeline
        self._catalogue = catalogue
        self._statistics = statistics
        self._metrics = metrics
        self._limits = limits
        self._settings = settings
        self._ready = ready

    async def ServerLive(self, request: api.ServerLiveRequest, context: Context) -> api.ServerLiveResponse:
        """Tells that the server lives."""
        return api.ServerLiveResponse(live=True)

    async def ServerReady(self, request: api.ServerReadyRequest, context: Context) -> api.ServerReadyResponse:
        """Tells whether the server takes requests."""
        return api.ServerReadyResponse(ready=self._ready())

    async def ModelReady(self, request: api.ModelReadyRequest, context: Context) -> api.ModelReadyResponse:
        """Tells whether a model takes requests."""
        return await guard(context, "ModelReady", "", self._model_ready(request))

    async def ServerMetadata(self, request: api.ServerMetadataRequest, context: Context) -> api.ServerMetadataResponse:
        """Describes the server."""
        return server_message()

    async def ModelMetadata(self, request: api.ModelMetadataRequest, context: Context) -> api.ModelMetadataResponse:
        """Describes the tensors of a model."""
        return await guard(context, "ModelMetadata", "", self._model_metadata(request))

    async def ModelConfig(self, request: api.ModelConfigRequest, context: Context) -> api.ModelConfigResponse:
        """Describes a model as a configuration."""
        return await guard(context, "ModelConfig", "", self._model_config(request))

    async def ModelStatistics(
        self, request: api.ModelStatisticsRequest, context: Context
    ) -> api.ModelStatisticsResponse:
        """Tells what models have read."""
        return await guard(context, "ModelStatistics", "", self._model_statistics(request))

    async def RepositoryIndex(
        self, request: api.RepositoryIndexRequest, context: Context
    ) -> api.RepositoryIndexResponse:
        """Lists the models."""
        ready = self._ready()
        return index_message(self._catalogue.models if ready or not request.ready else (), ready)

    async def ModelInfer(self, request: api.ModelInferRequest, context: Context) -> api.ModelInferResponse:
        """Reads images."""
        request_id = request.id or call_request_id(context)
        return await guard(context, "ModelInfer", request_id, self._model_infer(request, request_id, context))

    async def _model_ready(self, request: api.ModelReadyRequest) -> api.ModelReadyResponse:
        try:
            self._catalogue.find(request.name, request.version)
        except UnknownModelError:
            return api.ModelReadyResponse(ready=False)
        return api.ModelReadyResponse(ready=self._ready())

    async def _model_metadata(self, request: api.ModelMetadataRequest) -> api.ModelMetadataResponse:
        return metadata_message(self._catalogue.find(request.name, request.version), self._catalogue)

    async def _model_config(self, request: api.ModelConfigRequest) -> api.ModelConfigResponse:
        model = self._catalogue.find(request.name, request.version)
        return config_message(model, workers=self._settings.worker_count, on_gpu=self._settings.device != "cpu")

    async def _model_statistics(self, request: api.ModelStatisticsRequest) -> api.ModelStatisticsResponse:
        return statistics_message(self._models(request.name, request.version), self._statistics)

    async def _model_infer(
        self, request: api.ModelInferRequest, request_id: str, context: Context
    ) -> api.ModelInferResponse:
        deadline = call_deadline(context)
        asked = self._read(request)
        model, config = self._config(request, asked.parameters)
        self._limits.check_call(len(asked.images), sum(map(len, asked.images)), has_truth=asked.references is not None)
        ids = request_ids(request_id, len(asked.images))
        outcomes = await self._pipeline.read_all(
            requests_of(asked, config, ids), client_of(context), _earlier(deadline, asked.parameters.timeout)
        )
        began = time.perf_counter()
        for name, outcome in zip(ids, outcomes, strict=True):
            if isinstance(outcome, GlyphlineError):
                log_failure(outcome, "ModelInfer", name)
        response = answer_message(asked, outcomes)
        response.id = request.id
        response.model_name, response.model_version = model.name, str(model.version)
        self._metrics.observe_encoding(time.perf_counter() - began)
        return response

    def _read(self, request: api.ModelInferRequest) -> Asked:
        try:
            return read_message(request, self._settings.request_images)
        except GlyphlineError as error:
            self._metrics.count_call_refusal(error)
            raise

    def _config(self, request: api.ModelInferRequest, parameters: Parameters) -> tuple[ServedModel, ReadConfig]:
        """Finds the model, and keeps to it: all images of a request are read by one version."""
        config = ReadConfig(request.model_name, request.model_version, parameters.options, parameters.priority)
        try:
            self._pipeline.admission.check_config(config)
        except OptionsError as error:
            raise RequestError(f"parameters.{error.field}", error.message) from error
        model = self._catalogue.find(config.model, config.version)
        return model, dataclasses.replace(config, model=model.name, version=str(model.version))

    def _models(self, name: str, version: str) -> Sequence[ServedModel]:
        """Returns the models that a name and a version stand for: all if both are empty."""
        if name and not version:
            latest = self._catalogue.find(name, "")
            return [model for model in self._catalogue.models if model.name == latest.name]
        return [self._catalogue.find(name, version)] if version else self._catalogue.models


def _earlier(deadline: float | None, timeout: float | None) -> float | None:
    """Returns the moment by which images must be read: that of the call, or that of its parameter if it is earlier."""
    if timeout is None:
        return deadline
    moment = asyncio.get_running_loop().time() + timeout
    return moment if deadline is None else min(deadline, moment)
