"""Define what travels between the server and the stage that judges: subjects, work, answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from assay.types import Limits, PromptForm

Kind = Literal["program", "completion", "run"]


class JudgeWork(NamedTuple):
    """One program on its way to a verdict."""

    number: int  # unique in the server
    kind: Kind
    text: str  # a program, a completion to extract it from, or the job of ``run_inside``
    limits: Limits
    task_id: str = ""
    position: int = 0  # in the request
    name: str | None = None  # the client's
    form: PromptForm = "chat"
    truncated: bool = False  # the completion was cut off at the token limit
    with_program: bool = False  # return the program that was extracted
    rule: str = "given"  # of a program
    seed: str = ""
    alone: bool = False  # its tests measure time


class EndedRun(NamedTuple):
    """The end of a program as ``run_inside`` saw it."""

    exit_code: int
    seconds: float
    output: bytes
    errors: bytes
    files: Mapping[str, bytes]


class JudgeAnswer(NamedTuple):
    """The outcome of one program: a line of JSON for clients, and facts for the server."""

    number: int
    status: str
    reason: str
    line: bytes  # a verdict
    cpu_s: float = 0.0
    detail: str = ""
    wall_s: float = 0.0
    output: str = ""
    ended: EndedRun | None = None  # of a run: how it ended; none: it was stopped
    refused: str = ""  # of a run: why it could not start
    program: str = ""  # that was extracted
    rule: str = ""
