"""What travels between a harness, a program and its tests, wherever these are.

Named tuples: JSON and marshal write them as lists, in fewer bytes than objects with named fields,
and the process that is forked for every program does not have to import dataclasses.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

# "ended": the program did, before its tests; "unfit": the tests cannot be run at all;
# "unsupported": this interpreter lacks what the program or its tests import.
Status = Literal["pass", "fail", "ended", "unfit", "unsupported"]
TEXTS: Final = 4  # fields of a result that a program's own process may tell


class Task(NamedTuple):
    """A program with its tests; none if these are elsewhere."""

    preamble: str
    program: str
    tests: str
    entry_point: str
    abridged: bool  # code may want to look at all of a large value, cases do not


class TestBody(NamedTuple):
    """Tests that call a program from elsewhere: code, which cases are compared by."""

    entry_point: str
    code: str
    preamble: str
    inputs: dict[str, list[Any]] | None = None  # by group: arguments as plain data
    expected: dict[str, list[Any]] | None = None  # empty: the outputs are wanted


class Group(NamedTuple):
    """Cases of one group, and how many of them the program got right."""

    name: str
    right: int
    cases: int


class Failure(NamedTuple):
    """How a call of a program failed; ``raised`` is empty if the program did not even load."""

    raised: str
    reason: str
    detail: str


class Result(NamedTuple):
    """What tests say of a program: a verdict, or how far they came."""

    status: Status
    reason: str = ""
    detail: str = ""
    failing_test: str = ""
    groups: tuple[Group, ...] = ()
    outputs: dict[str, list[Any]] | None = None  # by group, as plain data
    slowest_s: float = 0.0  # time of the slowest call


def read_result(data: list[Any]) -> Result:
    """Read a result as JSON brings it."""
    result = Result(*data)
    if not result.groups:
        return result
    return result._replace(groups=tuple(Group(*group) for group in result.groups))
