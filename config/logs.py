"""JSON log formatter: one object a line, with the run and unit of a message."""

import json
import logging


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
