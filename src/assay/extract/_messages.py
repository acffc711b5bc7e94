"""The messages between the harness and a worker process, as JSON. The worker imports only this.

A batch is a list of ``TextRequest`` and its reply a list of ``Extraction``, each a JSON list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from assay.types import Program, PromptForm


class TextRequest(NamedTuple):
    """A text to extract a program from, and what the rules need of its problem."""

    text: str
    prompt: str
    entry_point: str
    tests: str
    preamble: str
    form: PromptForm
    without: tuple[str, ...]  # rules to leave out
    explain: bool
    answer: tuple[str, ...] = ()  # kind and function, if it is not a program
    only_rule: str = ""  # the only rule to apply; none: all
    suffix: str | None = None  # code after the gap that the text fills, if it does


@dataclass(frozen=True, slots=True)
class Change:
    """The lines that one rule removed (-) and added (+)."""

    rule: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Extraction:
    """The program in a text, or the reason and detail of the verdict if there is none."""

    program: Program
    reason: str = ""
    detail: str = ""
    changes: tuple[Change, ...] = ()
    alternative: Program | None = None  # to be judged if the program fails

    def encode(self) -> list[Any]:
        """Return plain lists: a program is its code and its rule."""
        own, other = self.program, self.alternative
        changes = [[change.rule, change.lines] for change in self.changes]
        programs = [own.code, own.rule], other and [other.code, other.rule]
        return [self.reason, self.detail, changes, *programs]


def decode_extraction(data: Any) -> Extraction:
    """Parse what ``encode`` returned. Raise ValueError or TypeError if it is malformed."""
    reason, detail, changes, own, other = data
    texts = [reason, detail, *own, *(other or ())]
    texts += [text for rule, lines in changes for text in (rule, *lines)]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("an extraction consists of strings")
    lines_by_rule = tuple(Change(rule, tuple(lines)) for rule, lines in changes)
    return Extraction(
        Program(*own), reason, detail, lines_by_rule, Program(*other) if other else None
    )
