"""JSON log formatter, one object a line with the run and unit of a message, and a filter of known errors."""

import json
import logging

from django.core.signing import BadSignature
from django.db import DatabaseError


class JsonLines(logging.Formatter):
    """Formats a record as a JSON line; ``extra={"run": …, "unit": …}`` become fields of it."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= {name: getattr(record, name) for name in ("run", "unit", "host") if hasattr(record, name)}
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False, default=str)


class KnownErrors(logging.Filter):
    """Shortens messages of the queue about errors that its next try or the sweep repairs: a database that is away, and
    tasks that another ``SECRET_KEY`` signed. They keep their sentence and lose their traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, BadSignature):
            record.msg, record.args = "discarded a task signed with another SECRET_KEY; its work is enqueued again", ()
            record.exc_info = None
        elif isinstance(error, DatabaseError):
            record.msg, record.args = f"{record.getMessage()}: {error}".rstrip(), ()
            record.exc_info = None
        return True
