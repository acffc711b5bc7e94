"""Execute programs: in a sandbox of this process, or by another judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from assay.judging import judge_jobs, references
from assay.judging.judge import Programs
from assay.progress import Silent
from assay.sandbox import Sandbox
from assay.types import Benchmark, Job, Verdict


class ProgramJudge(Protocol):
    """Define a judge of a benchmark's programs, such as ``assay.Judge``."""

    def judge(self, programs: Programs) -> list[Verdict]:
        """Return a verdict for every pair of a task id and a program, in their order."""
        ...


class Bench(Protocol):
    """Define where programs are executed."""

    any_tests: bool  # whether it judges with any tests, not only with those of a benchmark

    def prepare(self, benchmark: Benchmark) -> tuple[Benchmark, dict[str, str]]:
        """Return the benchmark ready to judge with, and the tasks that cannot be scored."""
        ...

    def judge(self, jobs: Sequence[Job]) -> Sequence[Verdict]:
        """Return a verdict for every job, whose ``sample`` is its position."""
        ...

    def close(self) -> None:
        """Stop what it has started."""
        ...


class SandboxBench:
    """Execute programs in a sandbox of this process, which stays warm."""

    any_tests = True

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def prepare(self, benchmark: Benchmark) -> tuple[Benchmark, dict[str, str]]:
        checked = references.check(benchmark, self._sandbox, Silent())
        return checked.benchmark, checked.unscorable

    def judge(self, jobs: Sequence[Job]) -> Sequence[Verdict]:
        found = {verdict.sample: verdict for verdict in judge_jobs(self._sandbox, list(jobs))}
        return [found[number] for number in range(len(jobs))]

    def close(self) -> None:
        self._sandbox.close()


class ProgramBench:
    """Let another judge execute the programs of a benchmark."""

    any_tests = False

    def __init__(self, judge: ProgramJudge, *, opened_here: bool = False) -> None:
        self._judge = judge
        self._opened_here = opened_here

    def prepare(self, benchmark: Benchmark) -> tuple[Benchmark, dict[str, str]]:
        return benchmark, dict(getattr(self._judge, "unscorable", {}))

    def judge(self, jobs: Sequence[Job]) -> Sequence[Verdict]:
        return self._judge.judge([(job.task_id, job.program.code) for job in jobs])

    def close(self) -> None:
        """Close the judge, unless it belongs to someone else."""
        close = getattr(self._judge, "close", None)
        if self._opened_here and close is not None:
            close()
