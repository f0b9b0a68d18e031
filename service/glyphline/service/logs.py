"""Log lines for machines: one JSON object each, with the request id where there is one."""

from __future__ import annotations

import json
import logging
import sys
import time
import zlib
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType

from glyphline.service.settings import ServerSettings

__all__ = [
    "CALLS",
    "LOG_FIELDS",
    "CallFields",
    "JsonFormatter",
    "SampleFilter",
    "Throttle",
    "add_log_fields",
    "configure_logging",
    "log_call",
]

CALLS = "glyphline.service.calls"
"""Name of the logger of calls that succeeded, of which a share is written."""

LOG_FIELDS: ContextVar[Mapping[str, object]] = ContextVar("log_fields", default=MappingProxyType({}))
"""Fields of every line that is written in the course of a call."""

_calls = logging.getLogger(CALLS)
_OWN_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Writes a record as one line of JSON; what was passed as `extra` becomes fields of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extra(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    """Writes a record for a person at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        moment = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        extra = "".join(f"  {name}={_on_one_line(value)}" for name, value in _extra(record).items())
        line = f"{moment} {record.levelname.lower():7} {_on_one_line(record.getMessage())}{extra}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class SampleFilter(logging.Filter):
    """Lets a share of records through. Which ones follows from their request ids: all or none of one request.

    Args:
        share: The share, from 0 to 1.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self._bound = share * 2**32

    def takes(self, request_id: str) -> bool:
        """Decides on a request."""
        return zlib.crc32(request_id.encode("utf-8", "replace")) < self._bound

    def filter(self, record: logging.LogRecord) -> bool:
        """Decides on a record."""
        return self.takes(str(getattr(record, "request_id", "")))


class Throttle:
    """Lets so many lines a second through, and counts those that it leaves out.

    Args:
        per_second: How many.
        clock: Tells the time in seconds.
    """

    def __init__(self, per_second: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._clock = clock
        self._second = 0.0  # when the second began
        self._taken = 0  # in it
        self._left_out = 0

    def take(self) -> int | None:
        """Decides on a line: returns how many were left out before it, or None if it is left out."""
        now = self._clock()
        if now - self._second >= 1.0:
            self._second, self._taken = now, 0
        if self._taken == self._per_second:
            self._left_out += 1
            return None
        self._taken += 1
        left_out, self._left_out = self._left_out, 0
        return left_out


class CallFields(logging.Filter):
    """Adds what is known of the call in whose course a line is written."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Adds it, where the line does not say the same itself."""
        for name, value in LOG_FIELDS.get().items():
            vars(record).setdefault(name, value)
        return True


def log_call(request_id: str, **fields: object) -> None:
    """Writes a line about a call that succeeded, if it is of the share that is written.

    That is asked before there is a record: to make one costs more than all else that is done here, and most are not
    written.
    """
    for each in _calls.filters:
        if isinstance(each, SampleFilter) and not each.takes(request_id):
            return
    _calls.info("call", extra={"request_id": request_id, **fields})


def add_log_fields(**fields: object) -> None:
    """Adds fields to all lines that are written in the course of this task's call from now on."""
    LOG_FIELDS.set({**LOG_FIELDS.get(), **fields})


def _is_no_lost_caller(record: logging.LogRecord) -> bool:
    """Leaves out what gRPC says, as an error, of a caller who left in the very moment of the answer."""
    return not record.getMessage().startswith("ExecuteBatchError raised in core")


def configure_logging(settings: ServerSettings) -> None:
    """Sends log lines to standard error in the form asked for: Glyphline's own, and the warnings of its libraries."""
    plain = settings.log_format == "text" or (settings.log_format == "auto" and sys.stderr.isatty())
    handler = logging.StreamHandler()
    handler.setFormatter(TextFormatter() if plain else JsonFormatter())
    handler.addFilter(CallFields())
    logging.getLogger("grpc._cython.cygrpc").addFilter(_is_no_lost_caller)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("glyphline").setLevel(settings.log_level.upper())
    _calls.filters[:] = [SampleFilter(settings.log_sample)]


def _on_one_line(value: object) -> str:
    """Writes a value so that it neither makes lines of its own nor steers the terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in str(value))


def _extra(record: logging.LogRecord) -> dict[str, object]:
    """Returns what the caller passed as `extra`."""
    return {name: value for name, value in vars(record).items() if name not in _OWN_FIELDS}
