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
from glyphline.service.client.errors import from_call, from_status
from glyphline.service.status import status_of


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (domain.EmptyImageError("empty"), InvalidRequestError),
        (service.UnknownModelError("x", "none"), NotFoundError),
        (service.QueueFullError("full"), OverloadedError),
        (service.NotReadyError("loading"), UnavailableError),
        (service.FatalImageError("fatal"), RecognitionError),
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
    assert from_status(status_of(service.NotReadyError("loading"))).retryable
    assert not from_status(status_of(service.FatalImageError("fatal"))).retryable
    assert not from_status(status_of(service.DeadlineError("late"))).retryable
    assert not RecognitionError(grpc.StatusCode.RESOURCE_EXHAUSTED, "message too large").retryable


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(RecognitionError(grpc.StatusCode.INTERNAL, "bug", reason="INTERNAL")))
    assert (error.code, error.reason, str(error)) == (grpc.StatusCode.INTERNAL, "INTERNAL", "bug (INTERNAL)")


def call_error(code: grpc.StatusCode, details: str) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details=details)


@pytest.mark.parametrize(
    ("code", "details", "said"),
    [
        (
            grpc.StatusCode.UNAVAILABLE,
            "connections to all backends failing; last error: UNAVAILABLE: ipv4:127.0.0.1:1: Failed to connect to "
            "remote host: connect: Connection refused (111)",
            "the server at host:1 cannot be reached",
        ),
        (
            grpc.StatusCode.UNAVAILABLE,
            "errors resolving nonsense: [field:hostname error:UNKNOWN: could not contact DNS servers]",
            "the server at host:1 cannot be found: its name is not known",
        ),
        (grpc.StatusCode.UNAVAILABLE, "Stream removed", "the server at host:1 broke the connection off"),
        (grpc.StatusCode.UNAVAILABLE, "no healthy upstream", "the server at host:1 cannot be reached"),
        (
            grpc.StatusCode.PERMISSION_DENIED,
            "RBAC: access denied",
            "the server at host:1 does not allow it, or what is before it",
        ),
        (grpc.StatusCode.CANCELLED, "CANCELLED", "the server at host:1 ended the call"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", "the server at host:1 gave no answer in time"),
        (
            grpc.StatusCode.UNKNOWN,
            "Unexpected <class 'X'>: y",
            "the server at host:1 failed and did not say why",
        ),
    ],
)
def test_what_grpc_failed_at_is_told_in_words_of_our_own(code: grpc.StatusCode, details: str, said: str) -> None:
    error = from_call(call_error(code, details), "host:1")
    assert str(error) == f"{said} ({code.name})"
    assert error.debug == details


def test_a_closed_client_is_not_tried_again() -> None:
    assert not from_call(call_error(grpc.StatusCode.CANCELLED, "Channel closed!")).retryable
    assert from_call(call_error(grpc.StatusCode.CANCELLED, "CANCELLED")).retryable


def test_complaint_11_a_call_that_the_servers_copy_of_the_deadline_ended_is_late() -> None:
    """HTTP/2 tells of it as of any cancellation; whose deadline it was is known by the time."""
    failure = call_error(grpc.StatusCode.CANCELLED, "CANCELLED")
    assert type(from_call(failure, remaining=0.001)) is DeadlineExceededError
    assert type(from_call(failure, remaining=-1.0)) is DeadlineExceededError
    assert type(from_call(failure, remaining=1.0)) is UnavailableError


@pytest.mark.parametrize("details", ["Received RST_STREAM with error code 2", "Internal error from Core"])
def test_a_call_that_broke_behind_a_proxy_is_no_fault_of_the_server(details: str) -> None:
    """gRPC tells of it as of an internal error; the server's own have a reason."""
    failure = call_error(grpc.StatusCode.INTERNAL, details)
    error = from_call(failure, "host:1")
    assert isinstance(error, UnavailableError)
    assert error.retryable
    assert "broke the connection off" in str(error)
    assert isinstance(from_call(failure, remaining=0.0), DeadlineExceededError)
    own = from_call(call_error(grpc.StatusCode.INTERNAL, "something else"))
    assert not isinstance(own, UnavailableError)
    assert not own.retryable


def test_a_message_that_is_too_large_is_the_callers_fault() -> None:
    details = "CLIENT: Sent message larger than max (83886147 vs. 67108864)"
    error = from_call(call_error(grpc.StatusCode.RESOURCE_EXHAUSTED, details))
    assert isinstance(error, InvalidRequestError)
    assert "at most 67108864 bytes" in error.message
    assert not error.retryable
