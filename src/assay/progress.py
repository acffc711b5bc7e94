"""Interface for progress and notes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from assay.types import Completion, Verdict

Announce = Callable[[str], None]  # takes one line for the user


class Reporter(Protocol):
    """A receiver of progress and notes. Its methods are called from several threads."""

    def note(self, text: str) -> None:
        """Report one line to the user."""

    def preparing(self, what: str, done: int, total: int) -> None:
        """Report the progress of a step before the run, such as checking references."""

    def begin(self, total: int, verdicts: list[Verdict], missing: int) -> None:
        """Report the start: verdicts of an earlier run, and the number of missing completions."""

    def loading(self) -> None:
        """Report that the engine is loading the model."""

    def generating(self, tokens: int) -> None:
        """Report the tokens generated so far, including those of unfinished completions."""

    def completed(self, completion: Completion) -> None:
        """Report a finished completion."""

    def judged(self, verdict: Verdict, cached: bool) -> None:
        """Report a verdict. ``cached`` means that the program was not executed in this run."""


class Silent:
    """A reporter that does nothing."""

    def note(self, text: str) -> None: ...
    def preparing(self, what: str, done: int, total: int) -> None: ...
    def begin(self, total: int, verdicts: list[Verdict], missing: int) -> None: ...
    def loading(self) -> None: ...
    def generating(self, tokens: int) -> None: ...
    def completed(self, completion: Completion) -> None: ...
    def judged(self, verdict: Verdict, cached: bool) -> None: ...
