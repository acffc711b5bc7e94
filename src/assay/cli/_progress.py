"""Show progress: a live line on a terminal, regular lines in a log, or nothing."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from assay.cli._output import note
from assay.cli._pace import (
    BatchProgress,
    GenerationProgress,
    RunProgress,
    StepProgress,
    is_line_due,
)
from assay.data.printable import CELL_LIMIT, clean_line
from assay.work import run_in_background

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.types import Completion, Verdict

TICK_S = 1.0
REFRESH_S = 0.1  # shortest time between updates of the live line: its score takes time to compute


class ProgressDisplay:
    """A ``Reporter`` on stderr, so that stdout contains only the result.

    It displays notes, and the progress of runs, batches and other work of known size. Progress is
    a live line on a terminal, elsewhere one line every 30 s even if nothing changes.
    """

    def __init__(
        self,
        title: str,
        *,
        quiet: bool,
        live: bool = True,
        judges: bool = True,  # whether completions get verdicts
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._title = clean_line(title, CELL_LIMIT)
        self._quiet = quiet
        self._judges = judges
        self._clock = clock
        self._opened = clock()
        self._last_line: float | None = None
        self._refreshed = 0.0
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._ticker: threading.Thread | None = None
        self._run: RunProgress | None = None
        self._batch: BatchProgress | None = None
        self._step = StepProgress("preparing", clock())
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
            with contextlib.suppress(RuntimeError):  # without a thread: work, but print no lines
                self._ticker = run_in_background(self._tick_on)
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        if self._ticker is not None:
            self._ticker.join()
        if self._live:
            self._live.stop()

    def note(self, text: str) -> None:
        if not self._quiet:
            note(text)

    def preparing(self, what: str, done: int, total: int) -> None:
        with self._lock:
            self._run = self._batch = None
            what = "" if what == self._title else what  # the line begins with the title
            if what != self._step.what:
                self._step = StepProgress(what, self._clock())
            self._step.report(done, total, self._clock())
        self._refresh()

    def begin(self, total: int, verdicts: list[Verdict], missing: int) -> None:
        generation = GenerationProgress(missing, self._clock())
        if not self._judges:
            if missing < total:
                self.note(f"resuming: {total - missing} of {total} completions are done")
            with self._lock:
                self._batch = BatchProgress(total - missing, generation)
            return
        if verdicts and len(verdicts) < total:
            self.note(f"resuming: {len(verdicts)} of {total} samples are done")
        elif verdicts:
            self.note("This run is already complete. Use --fresh to evaluate again.")
        with self._lock:
            self._run = RunProgress(total, generation)
            self._run.resume(verdicts)

    def loading(self) -> None:
        with self._lock:
            if generation := self._generation:
                generation.load(self._clock())
            else:
                self._step = StepProgress("loading the model", self._clock())

    def generating(self, tokens: int) -> None:
        with self._lock:
            if generation := self._generation:
                generation.report(tokens, self._clock())

    def completed(self, completion: Completion) -> None:
        with self._lock:
            if generation := self._generation:
                generation.add(completion, self._clock())
        self._refresh()

    def judged(self, verdict: Verdict, cached: bool) -> None:
        with self._lock:
            if run := self._run:
                now = self._clock()
                run.judge(verdict, now, cached=cached)
                if run.done == run.total and not self._live and not self._quiet:
                    self._print(run.text(now), now)
        self._refresh()

    @property
    def _generation(self) -> GenerationProgress | None:
        progress = self._run or self._batch
        return progress.generation if progress else None

    def _refresh(self) -> None:
        """Update the live line, unless it was updated a moment ago."""
        now = self._clock()
        if self._live and now - self._refreshed >= REFRESH_S:
            self._refreshed = now
            self.tick()

    def tick(self) -> None:
        """Update the live line, or print a line if one is due."""
        if self._quiet:
            return
        with self._lock:
            now = self._clock()
            if self._live:
                self._update(self._live, now)
            elif is_line_due(now, self._opened, self._last_line):
                self._print(self._progress.text(now), now)

    def _tick_on(self) -> None:
        while not self._closed.wait(TICK_S):
            self.tick()

    def _print(self, text: str, now: float) -> None:
        self._last_line = now
        note(f"{self._title} {text}" if self._title else text)

    def _update(self, live: Progress, now: float) -> None:
        """Update the live line, if there is something to show on it."""
        progress = self._progress
        if progress.total:
            if self._task is None:
                self._task = live.add_task(self._title, text="")
                live.start()
            text = clean_line(progress.text(now))
            live.update(self._task, total=progress.total, completed=progress.done, text=text)

    @property
    def _progress(self) -> RunProgress | BatchProgress | StepProgress:
        return self._run or self._batch or self._step
