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
    render_seconds,
)
from assay.data.printable import CELL_LIMIT, clean_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from assay.types import Completion, Verdict

TICK_S = 1.0
REFRESH_S = 0.1  # shortest time between updates of the live line: its score takes time to compute


class Display:
    """Print notes and progress on stderr, so that stdout contains only the result.

    Progress is a live line on a terminal, elsewhere one line every 30 s even if nothing changes.
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
        self._refreshed = 0.0
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
            with contextlib.suppress(RuntimeError):  # without a thread: work, but print no lines
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
        """Update the live line, or print a line if one is due."""
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
        """Return the amount done, the total, and the line."""
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


class ProgressDisplay(Display):
    """A ``Reporter`` that displays runs, batches and other work of known size."""

    def __init__(
        self,
        title: str,
        *,
        quiet: bool,
        live: bool = True,
        judges: bool = True,  # whether completions get verdicts
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(title, quiet=quiet, live=live, clock=clock)
        self._judges = judges
        self._run: RunProgress | None = None
        self._batch: BatchProgress | None = None
        self._step = StepProgress("preparing", clock())

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
                if run.judged == run.total and not self._live and not self._quiet:
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

    def _status(self, now: float) -> tuple[int, int, str]:
        if run := self._run:
            return run.judged, run.total, run.text(now)
        if batch := self._batch:
            return batch.done, batch.total, batch.text(now)
        return self._step.done, self._step.total, self._step.text(now)
