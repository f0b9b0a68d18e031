"""The client of a Glyphline server: `Client` for plain code, `AsyncClient` for asyncio."""

from glyphline.service.client.aio import AsyncClient
from glyphline.service.client.credentials import tls_credentials
from glyphline.service.client.errors import (
    AccessError,
    ClientClosedError,
    DeadlineExceededError,
    FieldViolation,
    InputError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    RecognitionError,
    UnavailableError,
)
from glyphline.service.client.images import ImageInput, encode_image
from glyphline.service.client.requests import Priority
from glyphline.service.client.results import Evaluation, Metadata, ModelInfo, Outcome, Result
from glyphline.service.client.retry import RetryPolicy
from glyphline.service.client.sync import Client

__all__ = [
    "AccessError",
    "AsyncClient",
    "Client",
    "ClientClosedError",
    "DeadlineExceededError",
    "Evaluation",
    "FieldViolation",
    "ImageInput",
    "InputError",
    "InvalidRequestError",
    "Metadata",
    "ModelInfo",
    "NotFoundError",
    "Outcome",
    "OverloadedError",
    "Priority",
    "RecognitionError",
    "Result",
    "RetryPolicy",
    "UnavailableError",
    "encode_image",
    "tls_credentials",
]
