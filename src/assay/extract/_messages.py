"""Define messages between the harness and a worker process about one text, as JSON lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from assay.types import Program, PromptForm


class TextRequest(NamedTuple):
    """Hold a text to extract a program from, and what the rules need of its problem."""

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
    """Hold the lines that one rule removed (-) and added (+)."""

    rule: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExtractionReply:
    """The program in a text, an alternative if it fails, or why there is none."""

    program: Program | None = None
    alternative: Program | None = None
    changes: tuple[Change, ...] = ()
    error: str = ""


def encode_reply(reply: ExtractionReply) -> list[Any]:
    """Return a reply as JSON-ready data: a program is its code and its rule."""
    programs = [one and [one.code, one.rule] for one in (reply.program, reply.alternative)]
    return [*programs, [[change.rule, change.lines] for change in reply.changes], reply.error]


def decode_reply(data: list[Any]) -> ExtractionReply:
    """Parse a reply. Raise ValueError or TypeError if it is malformed."""
    program, alternative, changes, error = data
    if not isinstance(error, str):
        raise TypeError("an error must be a string")
    return ExtractionReply(
        _decode_program(program),
        _decode_program(alternative),
        tuple(_decode_change(change) for change in changes),
        error,
    )


def _decode_program(data: list[Any] | None) -> Program | None:
    if data is None:
        return None
    code, rule = _strings(data)
    return Program(code, rule)


def _decode_change(data: list[Any]) -> Change:
    rule, lines = data
    (name,) = _strings([rule])
    return Change(name, _strings(lines))


def _strings(data: list[Any]) -> tuple[str, ...]:
    if not all(isinstance(text, str) for text in data):
        raise TypeError("code, rules and lines must be strings")
    return tuple(data)
