"""Log lines are JSON objects that carry what was passed along."""

from __future__ import annotations

import contextvars
import json
import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from glyphline.service.client import Client, RecognitionError
from glyphline.service.logs import (
    CALLS,
    CallFields,
    JsonFormatter,
    SampleFilter,
    TextFormatter,
    Throttle,
    add_log_fields,
    log_call,
)

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess


def record(message: str, **extra: object) -> logging.LogRecord:
    return logging.getLogger("glyphline.test").makeRecord(
        "glyphline.test", logging.INFO, __file__, 1, message, (), None, extra=extra
    )


def test_a_line_is_one_object_with_the_extra_fields() -> None:
    text = JsonFormatter().format(record("refused\nit", request_id="a-1", code="NOT_FOUND"))
    assert "\n" not in text
    line = json.loads(text)
    assert line["message"] == "refused\nit"
    assert (line["level"], line["request_id"], line["code"]) == ("info", "a-1", "NOT_FOUND")
    assert line["time"].endswith("+00:00")


def test_exceptions_are_part_of_the_line() -> None:
    try:
        raise ValueError("boom")
    except ValueError:
        failed = record("failed")
        failed.exc_info = sys.exc_info()
    assert "ValueError: boom" in json.loads(JsonFormatter().format(failed))["exception"]


def test_the_plain_form_shows_the_same() -> None:
    assert TextFormatter().format(record("ready", workers=2)).endswith("info    ready  workers=2")


def test_the_plain_form_stays_on_its_line() -> None:
    forged = "a\n12:00:00 error   all is lost \x1b[2J\u2028é"
    text = TextFormatter().format(record("refused\r", request_id=forged))
    assert text.isprintable()
    assert text.endswith("refused\\r  request_id=a\\n12:00:00 error   all is lost \\x1b[2J\\u2028é")


def test_a_share_of_the_calls_is_written_and_always_the_same_ones() -> None:
    records = [record("call", request_id=f"request-{number}") for number in range(2000)]
    kept = [SampleFilter(0.1).filter(each) for each in records]
    assert 120 < sum(kept) < 280
    assert kept == [SampleFilter(0.1).filter(each) for each in records]
    assert all(SampleFilter(1).filter(each) for each in records)
    assert not any(SampleFilter(0).filter(each) for each in records)
    wider = [SampleFilter(0.5).filter(each) for each in records]
    assert all(b for a, b in zip(kept, wider, strict=True) if a)  # a larger share holds the smaller one


def test_a_call_that_is_not_written_makes_no_record(caplog: pytest.LogCaptureFixture) -> None:
    calls = logging.getLogger(CALLS)
    before = calls.filters[:]
    try:
        with caplog.at_level(logging.INFO, CALLS):
            for share in (0, 1):
                calls.filters[:] = [SampleFilter(share)]
                log_call(f"with share {share}", method="Recognize")
    finally:
        calls.filters[:] = before
    (line,) = caplog.records
    assert (vars(line)["request_id"], vars(line)["method"]) == ("with share 1", "Recognize")


def test_lines_of_a_call_tell_whose_it_is() -> None:
    def work() -> logging.LogRecord:
        add_log_fields(client="counter", trace_id="7")
        add_log_fields(client="partner")
        line = record("refused", client="as said")
        assert CallFields().filter(line)
        other = record("refused")
        assert CallFields().filter(other)
        assert vars(line)["client"] == "as said"
        return other

    line = contextvars.copy_context().run(work)
    assert (vars(line)["client"], vars(line)["trace_id"]) == ("partner", "7")
    outside = record("refused")
    assert CallFields().filter(outside)
    assert not hasattr(outside, "client")


def test_a_throttle_lets_so_many_a_second_through_and_counts_the_others() -> None:
    moments = iter([5.0, 5.1, 5.2, 5.9, 6.0, 6.1, 6.2, 9.0])
    throttle = Throttle(2, lambda: next(moments))
    assert [throttle.take() for _ in range(8)] == [0, 0, None, None, 2, 0, None, 1]


def test_failures_are_written_whatever_share_of_the_calls_is(
    start: Callable[..., ServerProcess], images: list[bytes]
) -> None:
    server = start(log_sample=0)
    with Client(server.target, timeout=60) as client:
        client.wait_until_ready(60)
        client.recognize(images[0], request_id="good")
        with pytest.raises(RecognitionError):
            client.recognize(b"", request_id="bad")
        client.recognize_many([images[0], b"text"])
    first = server.wait_for_line("request refused")
    second = server.wait_for_line("request refused", 2)
    assert (first["request_id"], first["client"], first["code"]) == ("bad", "127.0.0.1", "INVALID_ARGUMENT")
    assert (second["method"], second["client"]) == ("BatchRecognize", "127.0.0.1")
    assert server.stop() == 0
    assert not [line for line in server.lines if line["message"] == "call"]
