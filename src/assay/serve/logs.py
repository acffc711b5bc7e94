"""Write logs as lines of JSON on stderr."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from assay.data.printable import clean_line

LONGEST = 2_000  # characters of a text
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Log:
    """Write one line per event. Texts of clients cannot add lines: JSON escapes line ends."""

    def __init__(self, *, requests: bool = True) -> None:
        self.requests = requests

    def write(self, event: str, level: str = "info", **facts: Any) -> None:
        """Write an event with its facts."""
        line = {"time": round(time.time(), 3), "level": level, "event": event, **facts}
        try:
            sys.stderr.write(f"{_encode(line)}\n")
            sys.stderr.flush()
        except (OSError, ValueError):  # nobody reads the log, which must not end the service
            return

    def error(self, event: str, text: str) -> None:
        """Write an error."""
        self.write(event, "error", detail=clean_line(text, LONGEST))


class LogHandler(logging.Handler):
    """Pass what libraries log on to a log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record of a library."""
        text = clean_line(record.getMessage(), LONGEST)
        self._log.write(record.name, record.levelname.lower(), detail=text)
