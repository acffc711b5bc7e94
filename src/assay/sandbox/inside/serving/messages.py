"""Define messages between the harness and a worker's servers, each a JSON list.

A server that cannot continue answers with a text instead. It is lost then.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from ..judging.messages import Result, Task

RoleName = Literal["keeper", "oracle"]
TESTS_CPU_S = 20.0  # of the tests' own work for one program
TESTS_ROOM = 1.25  # times that limit, for whoever watches: what tests can end, they end first
TESTS_TOO_SLOW = "its answers take too long to check"
SCRIPTS = "scripts"  # in place of an integrity: programs that read standard input


class WorkerLimits(NamedTuple):
    """Hold the limits that are the same for all programs of a worker."""

    memory_mb: int
    processes: int
    files_mb: int


class Settings(NamedTuple):
    """Hold the settings that a worker gets once and cannot change later."""

    tier: str
    # Programs must not be forked from a process that has seen separated tests.
    integrity: str
    limits: WorkerLimits
    imports: tuple[str, ...]
    allowed: tuple[str, ...]  # beyond the usual, by the environment
    variables: dict[str, str]
    private: tuple[str, ...]  # paths that no program may see
    prelude: str = ""  # of programs that read standard input: code before all of them


class Beginning(NamedTuple):
    """Hold the first message to a server: its role."""

    role: RoleName
    link: int  # the descriptor that leads to the other server
    settings: Settings


class About(NamedTuple):
    """Hold a server's first answer."""

    limits_by: str = ""  # the kernel feature that holds the tree's limits; empty: a keeper watches


class Limits(NamedTuple):
    """Hold the limits of one program."""

    cpu_s: float
    call_cpu_s: float
    wall_s: float
    memory_mb: int
    processes: int
    output_bytes: int


CASE_WALL = 5  # times the CPU limit of a case


def case_limits(limits: Limits) -> Limits:
    """Return the limits of one run of a program that reads standard input."""
    case_s = limits.call_cpu_s
    if not case_s:
        return limits
    return limits._replace(
        cpu_s=min(limits.cpu_s, case_s), wall_s=min(limits.wall_s, CASE_WALL * case_s)
    )


class Order(NamedTuple):
    """Tell the keeper which program to run."""

    task: Task
    limits: Limits


class Turn(NamedTuple):
    """Send the oracle the tests of the program that the keeper runs next."""

    key: str
    seed: str  # of inputs that the tests draw
    body_follows: bool


class Seen(NamedTuple):
    """Report from the keeper what happened to a program."""

    result: Result | None  # its own word
    exit_code: int = 0
    stopped: str | None = None  # the limit that ended it
    out_of_memory: bool = False  # by its own limit
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_mb: float = 0.0
    output_tail: str = ""
    pressure: str = ""  # what the machine lacked: cpu, memory


def read_beginning(data: list[Any]) -> Beginning:
    role, link, settings = data
    tier, integrity, limits, imports, allowed, variables, private, prelude = settings
    return Beginning(
        role,
        link,
        Settings(
            tier, integrity, WorkerLimits(*limits), tuple(imports), tuple(allowed), variables,
            tuple(private), prelude,
        ),
    )  # fmt: skip


def read_order(data: list[Any]) -> Order:
    task, limits = data
    return Order(Task(*task), Limits(*limits))
