"""Log lines are JSON objects that carry what was passed along."""

from __future__ import annotations

import json
import logging
import sys

from glyphline.service.logs import JsonFormatter, TextFormatter


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
