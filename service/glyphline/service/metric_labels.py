"""The values that labels of metrics may have, and which of them an outcome and a refusal count as."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glyphline.models.decoding.readings import Reading
from glyphline.models.errors import GlyphlineError, ImageError, ModelNotFoundError, OptionsError
from glyphline.service.entries import Expired, Failed, Finished, Outcome, Withdrawn
from glyphline.service.errors import (
    DeadlineError,
    FatalImageError,
    IdleStreamError,
    NotReadyError,
    PermissionDeniedError,
    QueueFullError,
    RateError,
    RequestError,
    UnauthenticatedError,
)

if TYPE_CHECKING:
    from glyphline.service.batcher import Done

__all__ = ["DECODERS", "EDITS", "LOADS", "OUTCOMES", "REASONS", "STAGES", "UNKNOWN", "outcome_of", "refusal_of"]

DECODERS = ("greedy", "beam")
OUTCOMES = (
    "ok",
    "invalid_image",
    "invalid_request",
    "rejected",
    "expired",
    "cancelled",
    "worker_lost",
    "internal",
)
REASONS = (
    "queue_full",
    "not_ready",
    "deadline",
    "image",
    "request",
    "model",
    "unauthenticated",
    "permission",
    "rate",
    "idle",
)
LOADS = ("loaded", "refused")
EDITS = ("insertion", "deletion", "substitution")
STAGES = ("decode_image", "infer", "search", "encode")
UNKNOWN = "unknown"  # the model of a request that names none that is held


def outcome_of(outcome: Outcome[Done]) -> str:
    """Returns the outcome that an admitted image counts as."""
    match outcome:
        case Finished(value):
            if isinstance(value.result, Reading):
                return "ok"
            return "invalid_image" if isinstance(value.result, ImageError) else "internal"
        case Failed(error):
            if isinstance(error, QueueFullError):
                return "rejected"
            return "worker_lost" if isinstance(error, FatalImageError) else "internal"
        case Expired():
            return "expired"
        case Withdrawn():
            return "cancelled"


# Reason and outcome that a refusal counts as; of an error's class and its parents the first that is listed.
_REFUSALS: dict[type[Exception], tuple[str, str]] = {
    QueueFullError: ("queue_full", "rejected"),
    NotReadyError: ("not_ready", "rejected"),
    RateError: ("rate", "rejected"),
    UnauthenticatedError: ("unauthenticated", "rejected"),
    PermissionDeniedError: ("permission", "rejected"),
    IdleStreamError: ("idle", "rejected"),
    DeadlineError: ("deadline", "expired"),
    ImageError: ("image", "invalid_image"),
    ModelNotFoundError: ("model", "invalid_request"),
    RequestError: ("request", "invalid_request"),
    OptionsError: ("request", "invalid_request"),
    GlyphlineError: ("request", "internal"),
}


def refusal_of(error: GlyphlineError) -> tuple[str, str]:
    """Returns the reason and the outcome that a refusal counts as."""
    return next(_REFUSALS[kind] for kind in type(error).__mro__ if kind in _REFUSALS)
