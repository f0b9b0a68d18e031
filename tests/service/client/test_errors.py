"""Statuses come back as errors that say what to do."""

from __future__ import annotations

import pickle

import grpc
import pytest

from glyphline.models import errors as domain
from glyphline.service import errors as service
from glyphline.service.client import (
    DeadlineExceededError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    RecognitionError,
    UnavailableError,
)
from glyphline.service.client.errors import from_status
from glyphline.service.status import status_of


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (domain.EmptyImageError("empty"), InvalidRequestError),
        (service.UnknownModelError("x", "none"), NotFoundError),
        (service.QueueFullError("full"), OverloadedError),
        (service.WorkerLostError("lost"), UnavailableError),
        (service.DeadlineError("late"), DeadlineExceededError),
        (service.InternalError("bug"), RecognitionError),
    ],
)
def test_each_status_has_its_kind(error: Exception, kind: type[RecognitionError]) -> None:
    assert type(from_status(status_of(error))) is kind


def test_details_survive_the_way() -> None:
    error = from_status(status_of(domain.OptionsError("beam_width", "must be less"), "id-7"))
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.reason == "OPTION_INVALID"
    assert error.request_id == "id-7"
    (violation,) = error.field_violations
    assert (violation.field, violation.description) == ("config.beam_search.beam_width", "must be less")
    assert "INVALID_ARGUMENT" in str(error)


def test_only_what_may_pass_is_retryable() -> None:
    assert from_status(status_of(service.QueueFullError("full"))).retryable
    assert from_status(status_of(service.WorkerLostError("lost"))).retryable
    assert not from_status(status_of(service.DeadlineError("late"))).retryable
    assert not RecognitionError(grpc.StatusCode.RESOURCE_EXHAUSTED, "message too large").retryable


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(RecognitionError(grpc.StatusCode.INTERNAL, "bug", reason="INTERNAL")))
    assert (error.code, error.reason, str(error)) == (grpc.StatusCode.INTERNAL, "INTERNAL", "bug (INTERNAL)")
