"""Define messages between the harness and a worker's servers, each a JSON list.

A server that cannot continue answers with a text instead. It is lost then.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..judging.messages import Result, Task

if TYPE_CHECKING:
    from assay.types import Limits as JobLimits

RoleName = Literal["keeper", "oracle"]
TESTS_CPU_S = 20.0  # of the tests' own work for one program
TESTS_ROOM = 1.25  # times that limit, for whoever watches: what tests can end, they end first
TESTS_TOO_SLOW = "its answers take too long to check"
LONGEST_LINE = 400  # characters of a program's last line in a verdict's detail
SCRIPTS = "scripts"  # in place of an integrity: programs that read standard input


class WorkerLimits(NamedTuple):
    """The limits that are the same for all programs of a worker."""

    memory_mb: int
    processes: int
    files_mb: int


class Settings(NamedTuple):
    """The settings that a worker gets once and cannot change later."""

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
    """The first message to a server: its role."""

    role: RoleName
    link: int  # the descriptor that leads to the other server
    settings: Settings


class About(NamedTuple):
    """A server's first answer."""

    limits_by: str = ""  # the kernel feature that holds the tree's limits; empty: a keeper watches


class Limits(NamedTuple):
    """The limits of one program."""

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
    """The keeper's next program."""

    task: Task
    limits: Limits


class Turn(NamedTuple):
    """The oracle's next tests, of the program that the keeper runs next."""

    key: str
    seed: str  # of inputs that the tests draw
    body_follows: bool


class Seen(NamedTuple):
    """The keeper's report of what happened to a program."""

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


# Reasons and details by the limit that ended a program.
STOPPED = {
    "memory": ("memory", "used more than {limits.memory_mb} MB"),
    "processes": ("processes", "ran more than {limits.processes} processes"),
    "wall": ("timeout", "still running after {limits.wall_s:g} s"),
    "cpu": ("timeout", "used {limits.cpu_s:g} s of CPU time"),
    "output": ("output", "printed more than {output_mb:g} MB"),
}


def explain_limit(stopped: str | None, limits: Limits | JobLimits) -> tuple[str, str] | None:
    """Return the reason and detail of a program that a limit ended, or None."""
    if stopped not in STOPPED:
        return None
    reason, detail = STOPPED[stopped]
    return reason, detail.format(limits=limits, output_mb=limits.output_bytes / 2**20)


def explain_exit(code: int, output: str, when: str = "") -> tuple[str, str]:
    """Return the reason and detail of a program that ended by itself, with its last line."""
    if code >= 0:
        return "exit", with_last_line(f"left with exit code {code}{when}", output)
    try:
        name = signal.Signals(-code).name
    except ValueError:  # most real-time signals have none
        name = f"signal {-code}"
    return "signal", with_last_line(f"ended by {name}", output)


def with_last_line(detail: str, output: str) -> str:
    """Return a detail followed by the last line that a program printed, if it has any."""
    lines = output.strip().splitlines()
    return f"{detail}: {lines[-1][-LONGEST_LINE:]}" if lines else detail
