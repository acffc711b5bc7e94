"""Count what the server does, and write the counts in Prometheus's text format."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable
from pathlib import Path

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
PAGE = 4096
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Hold counters and one histogram per route. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, Labels], float] = {}
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        with self._lock:
            key = name, tuple(labels.items())
            self._counts[key] = self._counts.get(key, 0) + amount

    def observe(self, route: str, seconds: float) -> None:
        """Add a request to the histogram of its route."""
        with self._lock:
            buckets = self._buckets.setdefault(route, [0] * (len(BUCKETS) + 1))
            buckets[bisect_left(BUCKETS, seconds)] += 1
            self._seconds[route] = self._seconds.get(route, 0.0) + seconds

    def gauge(self, name: str, help_text: str, read: Callable[[], float]) -> None:
        """Add a value that is read on request."""
        self._gauges[name] = help_text, read

    def render(self) -> str:
        """Return all values as text."""
        with self._lock:
            counts = sorted(self._counts.items())
            buckets = {route: list(found) for route, found in self._buckets.items()}
            seconds = dict(self._seconds)
        lines: list[str] = []
        seen = ""
        for (name, labels), value in counts:
            if name != seen:
                lines += [f"# HELP {name} {COUNTERS[name]}", f"# TYPE {name} counter"]
                seen = name
            lines.append(f"{name}{_labels(labels)} {_number(value)}")
        lines += _histogram(buckets, seconds)
        for name, (help_text, read) in sorted(self._gauges.items()):
            shown = _number(read())
            lines += [f"# HELP {name} {help_text}", f"# TYPE {name} gauge", f"{name} {shown}"]
        return "\n".join(lines) + "\n"


COUNTERS = {
    "assay_requests_total": "Requests by route and status.",
    "assay_programs_total": "Programs by outcome.",
    "assay_program_cpu_seconds_total": "CPU seconds of programs.",
    "assay_rejected_total": "Requests that were refused because of load.",
    "assay_cancelled_programs_total": "Programs dropped because the client disconnected or the "
    "time limit was reached.",
}
SECONDS = "assay_request_seconds"


def _histogram(buckets: dict[str, list[int]], seconds: dict[str, float]) -> Iterable[str]:
    if not buckets:
        return
    yield f"# HELP {SECONDS} Seconds from a request's arrival to its answer."
    yield f"# TYPE {SECONDS} histogram"
    for route, counts in sorted(buckets.items()):
        total = 0
        for bound, count in zip([*map(str, BUCKETS), "+Inf"], counts, strict=True):
            total += count
            yield f'{SECONDS}_bucket{{route="{route}",le="{bound}"}} {total}'
        yield f'{SECONDS}_sum{{route="{route}"}} {seconds[route]:.6f}'
        yield f'{SECONDS}_count{{route="{route}"}} {total}'


def _number(value: float) -> str:
    """Return all digits of a number: a counter with six of them would stand still."""
    return str(int(value)) if value == int(value) else repr(round(value, 6))


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in labels) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resident_bytes() -> float:
    """Return the memory that this process has in use."""
    try:
        return float(Path("/proc/self/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError, ValueError):
        return 0.0
