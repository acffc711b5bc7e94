"""Define messages between the harness, a program and its tests, wherever these are.

They are named tuples. JSON and marshal write these as lists, in fewer bytes than objects with named
fields. Also, the process that is forked for every program need not import dataclasses.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

# "ended": the program did, before its tests; "unfit": the tests cannot be run at all;
# "unsupported": this interpreter lacks what the program or its tests import.
Status = Literal["pass", "fail", "ended", "unfit", "unsupported"]
TEXTS: Final = 4  # fields of a result that a program's own process may report


class Task(NamedTuple):
    """A program with its tests, or without if these are elsewhere."""

    preamble: str
    program: str
    tests: str
    entry_point: str
    abridged: bool  # code may want to look at all of a large value, cases do not


class Texts(NamedTuple):
    """Cases that are pairs of texts: an input, and the expected output."""

    style: str  # stdin, calls
    comparison: str
    run_all: bool
    pairs: tuple[tuple[str, str], ...]


class TestBody(NamedTuple):
    """Tests that call a program from elsewhere: code, which also compares cases."""

    entry_point: str
    code: str
    preamble: str
    inputs: dict[str, list[Any]] | None = None  # by group: arguments as plain data
    expected: dict[str, list[Any]] | None = None  # empty: the outputs are wanted
    texts: Texts | None = None


class Ended(NamedTuple):
    """The end of the run of one case. ``reason`` is empty if the program ended by itself."""

    reason: str
    detail: str
    printed: bytes


class Group(NamedTuple):
    """The number of cases of one group, and of those that the program got right."""

    name: str
    right: int
    cases: int


class Failure(NamedTuple):
    """The way a call of a program failed. ``raised`` is empty if it did not even load."""

    raised: str
    reason: str
    detail: str


class Result(NamedTuple):
    """The outcome of the tests of a program: a verdict, or how far they came."""

    status: Status
    reason: str = ""
    detail: str = ""
    failing_test: str = ""
    groups: tuple[Group, ...] = ()
    outputs: dict[str, list[Any]] | None = None  # by group, as plain data
    slowest_s: float = 0.0  # time of the slowest call
    # Only tests in a separate process report these, each a bounded text.
    call: str | None = None
    expected: str | None = None
    actual: str | None = None
    difference: str | None = None
    input: str | None = None


def read_texts(data: tuple[Any, ...]) -> Texts:
    """Parse cases that arrived as JSON."""
    style, comparison, run_all, pairs = data
    return Texts(style, comparison, run_all, tuple((given, output) for given, output in pairs))


def read_result(data: list[Any]) -> Result:
    """Parse a result that arrived as JSON."""
    result = Result(*data)
    if not result.groups:
        return result
    return result._replace(groups=tuple(Group(*group) for group in result.groups))
