"""Describe what happened to a program in a worker, as the harness sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.sandbox.inside.judging.messages import Result, read_result
from assay.sandbox.inside.serving.messages import Seen


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """A worker's report: the ``result`` of the program, and that of its oracle."""

    result: Result | None
    exit_code: int
    stopped: str | None  # the limit that ended it
    out_of_memory: bool  # by its own limit
    wall_s: float
    cpu_s: float
    peak_mb: float
    output_tail: str
    pressure: str = ""  # what the machine lacked: cpu, memory
    oracle_result: Result | None = None
    killed_by_host: bool = False

    @property
    def failure_of_ours(self) -> str:
        """Return why the harness saw no valid outcome of the program, or an empty text."""
        for result in (self.result, self.oracle_result):
            if result and result.status == "unfit":
                return result.detail
        return ""

    @property
    def doubtful(self) -> bool:
        """Return whether something other than the program may have caused the outcome."""
        return bool(self.pressure or self.killed_by_host)


@dataclass(frozen=True, slots=True)
class SandboxFailure:
    """A failure of the harness, so that nothing was seen of a program.

    ``lost``: the worker ended. ``late``: it did not answer in time, and was ended.
    """

    why: str
    lost: bool = False
    late: bool = False

    doubtful = True
    pressure = ""
    killed_by_host = False


@dataclass(frozen=True, slots=True)
class BrokeWorker:
    """A program that ended its worker.

    It did so twice, while an honest one passes in such a worker, or its answers kept the tests busy
    beyond their time.
    """

    how: str
    reason: str = "broke-worker"

    doubtful = False
    pressure = ""
    killed_by_host = False


Outcome = WorkerReport | SandboxFailure | BrokeWorker


def parse_report(
    data: list[Any], oracle_result: Result | None = None
) -> WorkerReport | SandboxFailure:
    """Build a report from what a keeper has ``Seen``. These fields are a report's first ones."""
    seen = Seen(*data)
    result = read_result(data[0]) if data[0] else None
    report = WorkerReport(result, *seen[1:], oracle_result=oracle_result)
    if why := report.failure_of_ours:
        return SandboxFailure(why)
    return report
