"""Which failures are tried again, and when."""

from __future__ import annotations

import grpc
import pytest

from glyphline.service.client import RecognitionError, RetryPolicy

Code = grpc.StatusCode
POLICY = RetryPolicy(attempts=4, first_pause=0.1, longest_pause=1.0)


def most() -> float:
    """The greatest jitter."""
    return 1.0


@pytest.mark.parametrize("code", [Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.INTERNAL, Code.DEADLINE_EXCEEDED])
def test_what_would_fail_again_is_not_tried_again(code: grpc.StatusCode) -> None:
    assert POLICY.pause(RecognitionError(code, "no"), 1, 60.0) is None


def test_pauses_double_up_to_the_longest() -> None:
    policy = RetryPolicy(attempts=99, first_pause=0.1, longest_pause=1.0)
    error = RecognitionError(Code.UNAVAILABLE, "gone")
    assert [policy.pause(error, attempt, 60.0, most) for attempt in range(1, 7)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_jitter_spreads_clients() -> None:
    error = RecognitionError(Code.UNAVAILABLE, "gone")
    assert POLICY.pause(error, 1, 60.0, lambda: 0.0) == pytest.approx(0.05)


def test_attempts_are_bounded() -> None:
    assert POLICY.pause(RecognitionError(Code.UNAVAILABLE, "gone"), 4, 60.0) is None


def test_no_pause_outlasts_the_deadline() -> None:
    assert POLICY.pause(RecognitionError(Code.UNAVAILABLE, "gone"), 1, 0.05, most) is None


def test_the_servers_own_pause_is_honoured() -> None:
    error = RecognitionError(Code.RESOURCE_EXHAUSTED, "full", retry_after=2.0)
    assert POLICY.pause(error, 1, 60.0, lambda: 0.0) == 2.0


def test_a_message_that_is_too_large_stays_too_large() -> None:
    assert POLICY.pause(RecognitionError(Code.RESOURCE_EXHAUSTED, "larger than max"), 1, 60.0) is None


def test_a_batch_waits_for_its_most_patient_item() -> None:
    outcomes = [
        "a result",
        RecognitionError(Code.UNAVAILABLE, "lost", retry_after=0.5),
        RecognitionError(Code.RESOURCE_EXHAUSTED, "full", retry_after=3.0),
        RecognitionError(Code.INVALID_ARGUMENT, "bad"),
    ]
    pause = POLICY.batch_pause(outcomes, 1, 60.0)
    assert pause is not None
    assert 3.0 <= pause <= 4.5
    assert POLICY.batch_pause(outcomes[:1], 1, 60.0) is None
