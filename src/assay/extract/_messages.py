"""The messages between the harness and a worker process, as JSON. The worker imports only this.

A batch is a list of ``TextRequest``, each a JSON list, and its reply a list of ``Extraction``, each
a JSON object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

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
