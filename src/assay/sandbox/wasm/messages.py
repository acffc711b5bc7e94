"""Define messages between the harness and a process that runs WebAssembly, as JSON lists."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from assay.sandbox.inside.judging.messages import Result, Task, read_result

# How a program's instance ended: by a limit, the stack of WebAssembly, an answer that cannot be
# read, a call that took too long, answers that keep the tests busy, by itself, or by an error.
How = Literal["", "cpu", "wall", "stack", "answer", "call", "busy tests", "exit", "trap"]


class GuestLimits(NamedTuple):
    """Hold the limits of one program, in the guest's seconds."""

    cpu_s: float
    call_cpu_s: float
    slower: float  # than native code
    wall_s: float
    memory_mb: int


class GuestRequest(NamedTuple):
    """A program to be judged."""

    task: Task
    key: str  # of separated tests; empty: the tests are in the task
    tests: str | None  # a TestBody, unless the process has it already
    seed: str
    limits: GuestLimits


class GuestReport(NamedTuple):
    """Hold the outcome of a program. ``lost`` says why nothing was seen of it, without blame."""

    result: Result | None = None
    ended: How = ""
    detail: str = ""
    starved: bool = False  # it waited for a CPU
    lost: str = ""
    forgotten: bool = False  # the process has no tests any more
    cpu_s: float = 0.0
    wall_s: float = 0.0

    @property
    def doubtful(self) -> bool:
        """Return whether the program has no verdict yet, by its own failure or the harness's."""
        return bool(self.starved or self.lost)


def read_request(data: list[Any]) -> GuestRequest:
    task, key, tests, seed, limits = data
    return GuestRequest(Task(*task), key, tests, seed, GuestLimits(*limits))


def read_report(data: list[Any]) -> GuestReport:
    result, *rest = data
    return GuestReport(read_result(result) if result else None, *rest)
