"""Where progress and notes go."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from assay.types import Completion, Verdict

Announce = Callable[[str], None]  # takes one line for the user


class Reporter(Protocol):
    """Whoever watches a run. Its methods are called from several threads."""

    def note(self, text: str) -> None:
        """Take one line for the user."""

    def preparing(self, what: str, done: int, total: int) -> None:
        """Take note of a step before the run, such as checking references."""

    def begin(self, total: int, verdicts: list[Verdict], missing: int) -> None:
        """Begin with the verdicts of an earlier run; ``missing`` completions are generated."""

    def loading(self) -> None:
        """Take note that the engine loads the model."""

    def generating(self, tokens: int) -> None:
        """Take note that the model is loaded, and of its tokens so far, unfinished ones too."""

    def completed(self, completion: Completion) -> None:
        """Take a completion as it is made."""

    def judged(self, verdict: Verdict, cached: bool) -> None:
        """Take a verdict; a cached one was not executed in this run."""


class Silent:
    """A reporter that does nothing."""

    def note(self, text: str) -> None: ...
    def preparing(self, what: str, done: int, total: int) -> None: ...
    def begin(self, total: int, verdicts: list[Verdict], missing: int) -> None: ...
    def loading(self) -> None: ...
    def generating(self, tokens: int) -> None: ...
    def completed(self, completion: Completion) -> None: ...
    def judged(self, verdict: Verdict, cached: bool) -> None: ...
