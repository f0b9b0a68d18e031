"""Log lines for machines: one JSON object each, with the request id where there is one."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from glyphline.service.settings import ServerSettings

__all__ = ["JsonFormatter", "configure_logging"]

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
        extra = "".join(f"  {name}={value}" for name, value in _extra(record).items())
        line = f"{moment} {record.levelname.lower():7} {record.getMessage()}{extra}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def configure_logging(settings: ServerSettings) -> None:
    """Sends log lines to standard error in the form asked for: Glyphline's own, and the warnings of its libraries."""
    plain = settings.log_format == "text" or (settings.log_format == "auto" and sys.stderr.isatty())
    handler = logging.StreamHandler()
    handler.setFormatter(TextFormatter() if plain else JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("glyphline").setLevel(settings.log_level.upper())


def _extra(record: logging.LogRecord) -> dict[str, object]:
    """Returns what the caller passed as `extra`."""
    return {name: value for name, value in vars(record).items() if name not in _OWN_FIELDS}
