"""FeedbackService: takes the true texts of earlier readings."""

from __future__ import annotations

from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
from glyphline.service.boundary import Context, guard
from glyphline.service.conversion import evaluation_message, reference_text
from glyphline.service.errors import RequestError
from glyphline.service.pipeline import Pipeline

__all__ = ["FeedbackServicer"]


class FeedbackServicer(rpc.FeedbackServiceServicer):
    """Compares earlier readings with their true texts.

    Args:
        pipeline: Has the readings.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def SubmitReference(
        self, request: api.SubmitReferenceRequest, context: Context
    ) -> api.SubmitReferenceResponse:
        """Takes the true text of one reading."""
        return await guard(context, "SubmitReference", request.request_id, self._submit_reference(request))

    async def _submit_reference(self, request: api.SubmitReferenceRequest) -> api.SubmitReferenceResponse:
        if not request.request_id:
            raise RequestError("request_id", "must be given")
        reading, counts = self._pipeline.submit_reference(request.request_id, reference_text(request.reference_text))
        return api.SubmitReferenceResponse(
            evaluation=evaluation_message(counts),
            recognized_text=reading.text,
            model=reading.model.name,
            model_version=str(reading.model.version),
        )
