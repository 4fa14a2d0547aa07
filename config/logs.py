"""Structured logs: one JSON object a line, with the run and unit a message is about."""

import json
import logging


class JsonLines(logging.Formatter):
    """Formats a record as one JSON line; ``extra={"run": …, "unit": …}`` become fields of it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a JSON object with time, level, logger and message."""
        entry = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {name: getattr(record, name) for name in ("run", "unit", "host") if hasattr(record, name)}
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)
