"""Report what the server does: a log as lines of JSON, and counts in Prometheus's text format."""

from __future__ import annotations

import logging
import sys
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from assay.data import codec
from assay.data.printable import clean_line

LONGEST = 2_000  # characters of a text in the log
PAGE = 4096
Labels = tuple[tuple[str, str], ...]
SECONDS = "assay_request_seconds"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
COUNTERS = {
    "assay_requests_total": "Requests by route and status.",
    "assay_programs_total": "Programs by outcome.",
    "assay_program_cpu_seconds_total": "CPU seconds of programs.",
    "assay_rejected_total": "Requests that were refused because of load.",
    "assay_cancelled_programs_total": "Programs dropped because the client disconnected or the "
    "time limit was reached.",
}


class Log:
    """A log on stderr with one line per event.

    Texts of clients cannot add lines, because JSON escapes line ends.
    """

    def __init__(self, *, requests: bool = True) -> None:
        self.requests = requests

    def write(self, event: str, level: str = "info", **facts: Any) -> None:
        """Write an event with its facts."""
        line = {"time": round(time.time(), 3), "level": level, "event": event, **facts}
        try:
            sys.stderr.write(f"{codec.dumps(line)}\n")
            sys.stderr.flush()
        except (OSError, ValueError):  # nobody reads the log, which must not end the service
            return

    def error(self, event: str, text: str, level: str = "error") -> None:
        """Write an error."""
        self.write(event, level, detail=clean_line(text, LONGEST))


class LogHandler(logging.Handler):
    """A handler that passes what libraries log on to a log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record of a library."""
        self._log.error(record.name, record.getMessage(), record.levelname.lower())


class Metrics:
    """Counters, values that are read on request, and one histogram per route. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: defaultdict[tuple[str, Labels], float] = defaultdict(float)
        self._buckets: dict[str, list[int]] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        with self._lock:
            self._counts[name, tuple(labels.items())] += amount

    def observe(self, route: str, seconds: float) -> None:
        """Add a request to the histogram of its route."""
        with self._lock:
            buckets = self._buckets.setdefault(route, [0] * (len(BUCKETS) + 1))
            buckets[bisect_left(BUCKETS, seconds)] += 1
            self._seconds[route] += seconds

    def gauge(self, name: str, help_text: str, read: Callable[[], float]) -> None:
        """Add a value that is read on request."""
        self._gauges[name] = help_text, read

    def render(self) -> str:
        """Return all values as text."""
        with self._lock:
            return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        last = ""
        for (name, labels), value in sorted(self._counts.items()):
            if name != last:
                yield from _head(name, COUNTERS[name], "counter")
                last = name
            pairs = ",".join(f'{label}="{_escape(text)}"' for label, text in labels)
            yield f"{name}{'{' + pairs + '}' if pairs else ''} {_number(value)}"
        if self._buckets:
            yield from _head(
                SECONDS, "Seconds from a request's arrival to its answer.", "histogram"
            )
        for route, counts in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip([*map(str, BUCKETS), "+Inf"], counts, strict=True):
                total += count
                yield f'{SECONDS}_bucket{{route="{route}",le="{bound}"}} {total}'
            yield f'{SECONDS}_sum{{route="{route}"}} {self._seconds[route]:.6f}'
            yield f'{SECONDS}_count{{route="{route}"}} {total}'
        for name, (help_text, read) in sorted(self._gauges.items()):
            yield from _head(name, help_text, "gauge")
            yield f"{name} {_number(read())}"


def _head(name: str, help_text: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"


def _number(value: float) -> str:
    """Return all digits of a number: a counter with six of them would stand still."""
    return str(int(value)) if value == int(value) else repr(round(value, 6))


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resident_bytes() -> float:
    """Return the memory that this process has in use."""
    try:
        return float(Path("/proc/self/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError, ValueError):
        return 0.0
