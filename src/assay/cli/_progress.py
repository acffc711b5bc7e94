"""Show progress: one live line, plain lines, or nothing."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from assay.cli._output import note
from assay.printable import CELL_LIMIT, clean_line

if TYPE_CHECKING:
    from types import TracebackType

    from assay.types import Completion, Verdict

PLAIN_EVERY_S = 10.0


class Display:
    """Notes, and on a terminal a live line. On stderr, so that stdout holds the result alone."""

    def __init__(self, title: str, *, quiet: bool, live: bool = True) -> None:
        self._title = clean_line(title, CELL_LIMIT)
        self._quiet = quiet
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
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def note(self, text: str) -> None:
        if not self._quiet:
            note(text)

    def _update(self, done: int, total: int, text: str) -> None:
        """The live line, if there is one."""
        if self._live:
            if self._task is None:
                self._task = self._live.add_task(self._title, text="")
                self._live.start()
            self._live.update(self._task, total=total, completed=done, text=clean_line(text))


class WorkDisplay(Display):
    """Watches work whose amount is known: a live line, or a plain one now and then."""

    def __init__(self, title: str, *, quiet: bool) -> None:
        super().__init__(title, quiet=quiet)
        self._started = self._last_line = time.monotonic()

    def progress(self, done: int, total: int) -> None:
        now = time.monotonic()
        left = int((now - self._started) / max(1, done) * (total - done))
        text = f"{done:,}/{total:,}  ETA {left // 60}:{left % 60:02d}"
        if self._live:
            self._update(done, total, text)
        elif not self._quiet and now - self._last_line >= PLAIN_EVERY_S:
            self._last_line = now
            self.note(f"{self._title} {text}")


class ProgressDisplay(Display):
    """Watches a run."""

    def __init__(self, title: str, *, quiet: bool) -> None:
        super().__init__(title, quiet=quiet)
        self._lock = threading.Lock()
        self._total = self._judged = self._passed = self._invalid = 0
        self._generated = self._tokens = self._new = 0
        self._started = self._last_line = time.monotonic()

    def preparing(self, what: str, done: int, total: int) -> None:
        if self._quiet:
            return
        if self._live:
            self._update(done, total, f"{what} {done}/{total}")
        elif time.monotonic() - self._last_line >= PLAIN_EVERY_S:
            self._last_line = time.monotonic()
            self.note(f"{self._title} {what} {done}/{total}")

    def begin(self, total: int, verdicts: list[Verdict]) -> None:
        self._total, self._judged = total, len(verdicts)
        self._passed = sum(v.status == "pass" for v in verdicts)
        self._started = self._last_line = time.monotonic()
        if verdicts and len(verdicts) < total:
            self.note(f"continuing: {len(verdicts)} of {total} samples are done")
        elif verdicts:
            self.note("this run is complete; --fresh evaluates anew")
        self._update(0, total, "loading the model")
        self._show()

    def completed(self, completion: Completion) -> None:
        with self._lock:
            self._generated += 1
            self._tokens += completion.tokens_generated
        self._show()

    def judged(self, verdict: Verdict) -> None:
        with self._lock:
            self._judged += 1
            self._new += 1
            self._passed += verdict.status == "pass"
            self._invalid += verdict.status == "invalid"
        self._show()

    def _show(self) -> None:
        if self._quiet:
            return
        if self._live:
            self._update(self._judged, self._total, self._text())
            return
        now = time.monotonic()
        with self._lock:
            due = now - self._last_line >= PLAIN_EVERY_S or self._judged == self._total
            if due and self._new:
                self._last_line = now
                note(f"{self._title} {self._text()}")

    def _text(self) -> str:
        valid = self._judged - self._invalid
        parts = [f"{self._judged}/{self._total}"]
        parts.append(f"pass@1 {100 * self._passed / valid:.1f} %" if valid else "pass@1 -")
        parts.append(f"invalid {self._invalid}")
        elapsed = time.monotonic() - self._started
        if self._tokens and elapsed > 0:
            parts.append(f"{self._tokens / elapsed:.0f} tok/s")
        if self._new and self._judged < self._total:
            left = int(elapsed / self._new * (self._total - self._judged))
            parts.append(f"ETA {left // 60}:{left % 60:02d}")
        return "  ".join(parts)
