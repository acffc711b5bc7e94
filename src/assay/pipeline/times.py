"""Measure wall times of a run. What goes on at the same time counts once."""

from __future__ import annotations

import threading
import time

from assay import runs


class BusyTime:
    """The seconds in which at least one of several overlapping activities went on."""

    def __init__(self, begun: float) -> None:
        self._begun = begun
        self._spans: list[tuple[float, float]] = []
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        """Add an activity that took so long and ends now."""
        now = time.monotonic()
        start = max(self._begun, now - seconds)
        with self._lock:
            # Spans are added in the order of their ends, so only the last ones can overlap.
            while self._spans and self._spans[-1][1] >= start:
                start = min(start, self._spans.pop()[0])
            self._spans.append((start, now))

    def total(self) -> float:
        with self._lock:
            return sum(end - start for start, end in self._spans)

    def first(self) -> float | None:
        """Return when the first activity began."""
        with self._lock:
            return self._spans[0][0] if self._spans else None


class OpenTime:
    """The seconds in which at least one of several overlapping activities was open."""

    def __init__(self) -> None:
        self._open, self._since, self._before = 0, 0.0, 0.0
        self._lock = threading.Lock()

    def change(self, by: int) -> None:
        """Count activities that begin now, or that end now if the number is negative."""
        with self._lock:
            self._before, self._since = self._total(), time.monotonic()
            self._open += by

    def total(self) -> float:
        with self._lock:
            return self._total()

    def _total(self) -> float:
        return self._before + (time.monotonic() - self._since if self._open else 0.0)


class PartClock:
    """The wall times of a part of a run, recorded while it goes on, so that a kill loses little.

    Every line has the seconds since the line before it. Those of loading are known at the end: a
    request may end last that began first.
    """

    def __init__(self, run: runs.RunWriter, begun: float) -> None:
        self._run, self._begun = run, begun
        self._asked = self._recorded_at = time.monotonic()
        self._recorded: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
        self._lock = threading.Lock()
        self.generating, self.judging = BusyTime(self._asked), OpenTime()

    def record(self, *, ended: bool = False) -> None:
        """Write a line, unless the last one is younger than a second or 1 % of the part."""
        with self._lock:
            now = time.monotonic()
            if not ended and now - self._recorded_at < max(1.0, (now - self._begun) / 100):
                return
            first = self.generating.first()
            loading = first - self._asked if ended and first is not None else 0.0
            parts = loading, self.generating.total(), self.judging.total(), now - self._begun
            totals = tuple(round(seconds, 3) for seconds in parts)
            new = (round(b - a, 3) for a, b in zip(self._recorded, totals, strict=True))
            self._run.add_part(runs.PartTimes(*new))
            self._recorded, self._recorded_at = totals, now
