"""Turn a program into a job for a sandbox. Nothing else builds jobs that judge a benchmark."""

from __future__ import annotations

from dataclasses import dataclass

from assay.types import Benchmark, Job, Limits, Problem, Program, Tests


@dataclass(frozen=True, slots=True)
class JudgeTask:
    """A problem with everything that its programs are judged by."""

    problem: Problem
    limits: Limits = Limits()  # noqa: RUF009 - frozen
    imports: tuple[str, ...] = ()
    environment: str = ""
    alone: bool = False  # its tests measure time, so nothing else runs beside them
    unscorable: str = ""  # why its reference fails on this machine

    def make_job(
        self, program: Program, sample: int = 0, *, seed: str = "", tests: Tests | None = None
    ) -> Job:
        """Return the job for a program. ``tests`` replaces those of the problem."""
        return Job(
            task_id=self.problem.task_id,
            sample=sample,
            program=program,
            tests=tests or self.problem.tests,
            limits=self.limits,
            imports=self.imports,
            environment=self.environment,
            seed=seed,
            alone=self.alone,
        )


def task_of(benchmark: Benchmark, problem: Problem) -> JudgeTask:
    """Return a problem of a benchmark as a task."""
    return JudgeTask(
        problem,
        benchmark.limits_of(problem.task_id),
        benchmark.imports,
        benchmark.environment,
        problem.task_id in benchmark.timed,
    )


def tasks_of(benchmark: Benchmark) -> dict[str, JudgeTask]:
    """Return all tasks of a benchmark by their ids."""
    return {problem.task_id: task_of(benchmark, problem) for problem in benchmark.problems}
