"""The table of statuses, row by row, with the details that clients act on."""

from __future__ import annotations

from typing import TypeVar

import grpc
import pytest
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, ResourceInfo, RetryInfo
from google.rpc.status_pb2 import Status

from glyphline.models import errors as domain
from glyphline.service import errors as service
from glyphline.service.status import code_of, status_of

Kind = TypeVar("Kind", bound=Message)
Code = grpc.StatusCode


def detail(status: Status, kind: type[Kind]) -> Kind:
    """Returns the one detail of a kind."""
    (found,) = [each for each in status.details if each.TypeName() == kind.DESCRIPTOR.full_name]
    message = kind()
    found.Unpack(message)
    return message


TABLE = [
    (domain.EmptyImageError("empty"), Code.INVALID_ARGUMENT, "IMAGE_EMPTY"),
    (domain.UndecodableImageError("text"), Code.INVALID_ARGUMENT, "IMAGE_UNDECODABLE"),
    (domain.ImageTooLargeError("large"), Code.INVALID_ARGUMENT, "IMAGE_TOO_LARGE"),
    (domain.ImageTooWideError("wide"), Code.INVALID_ARGUMENT, "IMAGE_TOO_WIDE"),
    (domain.OptionsError("beam_width", "bad"), Code.INVALID_ARGUMENT, "OPTION_INVALID"),
    (service.RequestError("items", "bad"), Code.INVALID_ARGUMENT, "REQUEST_INVALID"),
    (service.UnknownModelError("nothing", "none"), Code.NOT_FOUND, "MODEL_NOT_FOUND"),
    (service.RequestNotFoundError("abc"), Code.NOT_FOUND, "READING_NOT_FOUND"),
    (service.ReferenceConflictError("other"), Code.ALREADY_EXISTS, "REFERENCE_EXISTS"),
    (service.QueueFullError("full"), Code.RESOURCE_EXHAUSTED, "QUEUE_FULL"),
    (service.NotReadyError("loading"), Code.UNAVAILABLE, "NOT_READY"),
    (service.FatalImageError("secret"), Code.INTERNAL, "IMAGE_FATAL"),
    (service.DeadlineError("late"), Code.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"),
    (service.InternalError("secret"), Code.INTERNAL, "INTERNAL"),
    (domain.BundleError("secret"), Code.INTERNAL, "INTERNAL"),
    (KeyError("secret"), Code.INTERNAL, "INTERNAL"),
]


@pytest.mark.parametrize(("error", "code", "reason"), TABLE, ids=str)
def test_each_error_has_its_status_and_reason(error: Exception, code: grpc.StatusCode, reason: str) -> None:
    status = status_of(error, "request-1")
    assert code_of(error) is code
    assert status.code == code.value[0]
    info = detail(status, ErrorInfo)
    assert (info.reason, info.domain, info.metadata["request_id"]) == (reason, "glyphline", "request-1")


def test_bad_values_name_their_field_in_the_request() -> None:
    cases = {
        "image.content": domain.EmptyImageError("empty"),
        "config.beam_search.beam_width": domain.OptionsError("beam_width", "bad"),
        "config.max_alternatives": domain.OptionsError("max_alternatives", "bad"),
        "config.allowed_characters": domain.OptionsError("allowed_characters", "bad"),
        "items": service.RequestError("items", "bad"),
    }
    for field, error in cases.items():
        (violation,) = detail(status_of(error), BadRequest).field_violations
        assert violation.field == field
        assert violation.description


def test_what_may_succeed_later_says_when() -> None:
    for error in (service.QueueFullError(""), service.NotReadyError("")):
        assert detail(status_of(error), RetryInfo).retry_delay.ToTimedelta().total_seconds() > 0


def test_what_is_not_there_is_named() -> None:
    resource = detail(status_of(service.UnknownModelError("digitz", "no model 'digitz'")), ResourceInfo)
    assert (resource.resource_type, resource.resource_name) == ("model", "digitz")


@pytest.mark.parametrize("error", [KeyError("secret"), service.InternalError("secret"), domain.BundleError("secret")])
def test_faults_of_the_server_leak_nothing(error: Exception) -> None:
    assert b"secret" not in status_of(error).SerializeToString()


def test_messages_stay_small_enough_for_headers() -> None:
    assert len(status_of(service.RequestError("x", "y" * 100_000)).SerializeToString()) < 4096
