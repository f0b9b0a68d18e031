"""A custom runtime of MLServer, as its guide has it: `load` and `predict`, and the server does the batching."""

from __future__ import annotations

from typing import Any

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.types import InferenceRequest, InferenceResponse
from peer_servers.reading import BatchReader


class GlyphlineRuntime(MLModel):  # type: ignore[misc]  # MLServer is not installed where types are checked
    """Reads the elements of the first input, which are encoded images."""

    async def load(self) -> bool:
        """Loads the bundle that `parameters.uri` names."""
        self._reader = BatchReader(self.settings.parameters.uri)
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Reads a batch that the server has merged of several requests."""
        data: Any = payload.inputs[0].data
        texts = self._reader.read(list(data.root))
        return InferenceResponse(model_name=self.name, outputs=[StringCodec.encode_output("text", texts)])
