"""Find and check answers that are not programs. Each module registers one kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assay.extract.rule import ExtractionTask, Found
from assay.registry import Registry
from assay.types import Tests

UNPARSABLE = "unparsable"  # the reason of an answer that is not of the kind that is asked for


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of an answer that needs no execution."""

    passed: bool
    reason: str
    detail: str = ""
    expected: str | None = None
    actual: str | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """A program for an answer that is executed. The tests call its function.

    ``arguments`` is a program that is executed before, in a separate process, if there are
    arguments to compute. Its value, as plain data, is what the tests call the function with.
    """

    code: str
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class AnswerKind:
    """A kind of answer: what it is, and its functions.

    ``find`` returns the answer in a model's text, or None. ``check`` decides about an answer, or
    returns what has to be executed.
    """

    summary: str
    find: Callable[[str, ExtractionTask], Found | None]
    check: Callable[[str, Tests], Decision | Execution]


# No plug-ins: as for extraction rules, the protocol has one version for all of them.
answer_kinds: Registry[AnswerKind] = Registry(
    "kind of answer", "assay.extract.answers", plug_ins=False
)
