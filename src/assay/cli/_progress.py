"""Show progress: one live line, a line now and then in a log, or nothing."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from assay.borders.printable import CELL_LIMIT, clean_line
from assay.cli._output import note
from assay.cli._pace import Generation, RunProgress, is_line_due, render_seconds, seconds_left
from assay.progress import Silent

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from assay.types import Completion, Verdict

TICK_S = 1.0


class Display:
    """Notes, and how far the work is. On stderr, so that stdout holds the result alone.

    On a terminal that is a live line, elsewhere a line every 30 s, also while nothing happens.
    """

    def __init__(
        self,
        title: str,
        *,
        quiet: bool,
        live: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._title = clean_line(title, CELL_LIMIT)
        self._quiet = quiet
        self._clock = clock
        self._opened = clock()
        self._last_line: float | None = None
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._ticker: threading.Thread | None = None
        self._live: Progress | None = None
        self._task: TaskID | None = None
        if live and not quiet and sys.stdout.isatty() and sys.stderr.isatty():
            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(24),
                TextColumn("{task.fields[text]}", markup=False),
            )
            self._live = Progress(*columns, console=Console(stderr=True), transient=True)

    def __enter__(self) -> Self:
        if not self._quiet:
            ticker = threading.Thread(target=self._tick_on, daemon=True)
            with contextlib.suppress(RuntimeError):  # no thread to be had: no lines, but the work
                ticker.start()
                self._ticker = ticker
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed.set()
        if self._ticker is not None:
            self._ticker.join()
        if self._live:
            self._live.stop()

    def note(self, text: str) -> None:
        if not self._quiet:
            note(text)

    def tick(self) -> None:
        """Bring the live line up to date, or print a line if one is due."""
        if self._quiet:
            return
        with self._lock:
            now = self._clock()
            done, total, text = self._status(now)
            if self._live:
                self._update(done, total, text)
            elif is_line_due(now, self._opened, self._last_line):
                self._print(text, now)

    def _status(self, now: float) -> tuple[int, int, str]:
        """Return how much is done of how much, and the line."""
        return 0, 0, f"running {render_seconds(now - self._opened)}"

    def _tick_on(self) -> None:
        while not self._closed.wait(TICK_S):
            self.tick()

    def _print(self, text: str, now: float) -> None:
        self._last_line = now
        note(f"{self._title} {text}" if self._title else text)

    def _update(self, done: int, total: int, text: str) -> None:
        """Update the live line, if there is one."""
        if self._live and total:
            if self._task is None:
                self._task = self._live.add_task(self._title, text="")
                self._live.start()
            self._live.update(self._task, total=total, completed=done, text=clean_line(text))


class WorkDisplay(Display, Silent):
    """Watches work whose amount is known once it has begun. What comes before is not in its ETA."""

    _done = _total = 0
    _first: tuple[int, float] | None = None
    _stage = "running"

    def loading(self) -> None:
        self._stage = "loading the model"

    def preparing(self, what: str, done: int, total: int) -> None:
        with self._lock:
            if what != self._stage:
                self._stage, self._first = what, None
            self._done, self._total = done, total
            self._first = self._first or (done, self._clock())
        if self._live:
            self.tick()

    def _status(self, now: float) -> tuple[int, int, str]:
        if self._first is None:
            return 0, 0, f"{self._stage} {render_seconds(now - self._opened)}"
        before, began = self._first
        what = "" if self._stage == self._title else f"{self._stage} "
        text = f"{what}{self._done:,}/{self._total:,}"
        left = seconds_left(self._done - before, self._total - self._done, now - began)
        if left is not None:
            text += f"  ETA {render_seconds(left)}"
        return self._done, self._total, text


class ProgressDisplay(Display):
    """Watches a run."""

    _run: RunProgress | None = None
    _preparing: tuple[str, int, int] = ("preparing", 0, 0)

    def preparing(self, what: str, done: int, total: int) -> None:
        with self._lock:
            self._run, self._preparing = None, (what, done, total)
        if self._live:
            self.tick()

    def begin(self, total: int, verdicts: list[Verdict], missing: int) -> None:
        if verdicts and len(verdicts) < total:
            self.note(f"continuing: {len(verdicts)} of {total} samples are done")
        elif verdicts:
            self.note("this run is complete; --fresh evaluates anew")
        with self._lock:
            self._run = RunProgress(
                total,
                Generation(missing, self._clock()),
                judged=len(verdicts),
                passed=sum(v.status == "pass" for v in verdicts),
                invalid=sum(v.status == "invalid" for v in verdicts),
            )

    def loading(self) -> None:
        with self._lock:
            if self._run:
                self._run.generation.load(self._clock())

    def generating(self, tokens: int) -> None:
        with self._lock:
            if self._run:
                self._run.generation.report(tokens, self._clock())

    def completed(self, completion: Completion) -> None:
        with self._lock:
            if self._run:
                self._run.generation.add(completion, self._clock())
        if self._live:
            self.tick()

    def judged(self, verdict: Verdict, cached: bool) -> None:
        with self._lock:
            if run := self._run:
                now = self._clock()
                run.judge(verdict, now, cached=cached)
                if run.judged == run.total and not self._live and not self._quiet:
                    self._print(run.text(now), now)
        if self._live:
            self.tick()

    def _status(self, now: float) -> tuple[int, int, str]:
        if self._run:
            return self._run.judged, self._run.total, self._run.text(now)
        what, done, total = self._preparing
        counted = f" {done}/{total}" if total else ""
        return done, total, f"{what}{counted}"
