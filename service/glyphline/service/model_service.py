"""ModelService: tells which models the server holds."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
from glyphline.service.boundary import Context, guard
from glyphline.service.catalogue import Catalogue, ServedModel
from glyphline.service.conversion import model_message
from glyphline.service.errors import RequestError
from glyphline.service.messages import ModelKey

__all__ = ["ModelServicer"]

_DEFAULT_PAGE = 50
_LARGEST_PAGE = 1000


class ModelServicer(rpc.ModelServiceServicer):
    """Lists and describes models.

    Args:
        catalogue: The models.
        providers: Tells what runs each, as far as it is known.
    """

    def __init__(self, catalogue: Catalogue, providers: Callable[[], dict[ModelKey, str]]) -> None:
        self._catalogue = catalogue
        self._providers = providers

    async def ListModels(self, request: api.ListModelsRequest, context: Context) -> api.ListModelsResponse:
        """Lists the models."""
        return await guard(context, "ListModels", "", self._list_models(request))

    async def GetModel(self, request: api.GetModelRequest, context: Context) -> api.GetModelResponse:
        """Describes one model."""
        return await guard(context, "GetModel", "", self._get_model(request))

    async def _list_models(self, request: api.ListModelsRequest) -> api.ListModelsResponse:
        if request.page_size < 0:
            raise RequestError("page_size", f"must not be negative, not {request.page_size}")
        size = min(request.page_size or _DEFAULT_PAGE, _LARGEST_PAGE)
        models = self._catalogue.models
        start = _position(request.page_token, len(models))
        page = models[start : start + size]
        more = start + size < len(models)
        return api.ListModelsResponse(
            models=[self._describe(model) for model in page], next_page_token=_token(start + size) if more else ""
        )

    async def _get_model(self, request: api.GetModelRequest) -> api.GetModelResponse:
        return api.GetModelResponse(model=self._describe(self._catalogue.find(request.name, request.version)))

    def _describe(self, model: ServedModel) -> api.Model:
        return model_message(model, self._catalogue, self._providers().get((model.name, model.version), ""))


def _token(position: int) -> str:
    """Makes a token that says nothing to clients, so that what it holds may change."""
    return base64.urlsafe_b64encode(f"models:{position}".encode()).decode()


def _position(token: str, count: int) -> int:
    """Returns where a page starts.

    Raises:
        RequestError: If the token is none of ours.
    """
    if not token:
        return 0
    try:
        kind, _, position = base64.b64decode(token, altchars=b"-_", validate=True).decode().partition(":")
        if kind == "models" and 0 < int(position) <= count:
            return int(position)
    except (binascii.Error, ValueError):
        pass
    raise RequestError("page_token", "is not the next_page_token of an earlier response")
