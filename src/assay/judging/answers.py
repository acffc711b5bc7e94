"""Decide about answers that need no execution, and turn the others into programs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from assay.data import codec, plain
from assay.extract.answers import UNPARSABLE, Decision, Execution, answer_kinds
from assay.sandbox import Sandbox
from assay.types import Cases, Job, Verdict

NOT_DATA = Decision(False, UNPARSABLE, "an argument is more than plain data")
TOO_LARGE = Decision(
    False, UNPARSABLE, f"the arguments have more than {plain.LARGE:,} items and characters"
)


@dataclass(frozen=True, slots=True)
class Computation:
    """The arguments of an answer, as a program whose output is the input of the next one.

    Few answers need one: 34 of 8,800 recorded ones. It is executed like every other program, so
    that one which takes long holds back nobody else.
    """

    job: Job
    answer: Job
    code: str

    def finish(self, verdict: Verdict, computed: Cases | None) -> Verdict | Job:
        """Return the job that calls the function, or why there is none. Only data reach it."""
        job, cases = self.answer, self.answer.tests.cases
        assert cases is not None
        if computed is None:
            return replace(verdict, groups=dict.fromkeys(cases.expected, (0, 1)))
        if plain.has_opaque(list(computed.expected.values())):
            return _verdict(job, NOT_DATA)
        inputs = computed.expected
        if any(not isinstance(arguments, list) for (arguments,) in inputs.values()):  # a digest
            return _verdict(job, TOO_LARGE)
        called = Cases(inputs, cases.expected, codec.digest([inputs, cases.expected]))
        tests = replace(job.tests, cases=called, answer=None)
        return replace(job, program=replace(job.program, code=self.code), tests=tests)


def decide(job: Job) -> Verdict | Job | Computation:
    """Return the verdict on an answer, or the job or computation that a sandbox can execute."""
    answer = job.tests.answer
    if answer is None:
        return job
    decision = answer_kinds.get(answer.kind).check(job.program.code, job.tests)
    if isinstance(decision, Decision):
        return _verdict(job, decision)
    if decision.arguments:
        return _compute_arguments(job, decision)
    return replace(job, program=replace(job.program, code=decision.code))


def _compute_arguments(job: Job, execution: Execution) -> Computation:
    cases = job.tests.cases
    assert cases is not None
    wanted = Cases({name: [[]] for name in cases.inputs}, {}, codec.digest(execution.arguments))
    program = replace(job.program, code=execution.arguments)
    tests = replace(job.tests, cases=wanted, answer=None)
    return Computation(replace(job, program=program, tests=tests), job, execution.code)


def _verdict(job: Job, decision: Decision) -> Verdict:
    cases = job.tests.cases
    return Verdict(
        job.task_id,
        job.sample,
        "pass" if decision.passed else "fail",
        decision.reason,
        decision.detail,
        integrity=job.tests.integrity,
        rule=job.program.rule,
        groups={name: (int(decision.passed), 1) for name in cases.expected} if cases else {},
        expected=decision.expected,
        actual=decision.actual,
    )


def judge_jobs(sandbox: Sandbox, jobs: Iterable[Job]) -> Iterator[Verdict]:
    """Yield one verdict per job, in any order. Only what has to be executed goes to the sandbox.

    Of a list, what is judged alone comes last: it waits for all others, which wait for it.
    """
    decided: deque[Verdict] = deque()
    computations: list[Computation] = []
    programs: Iterable[Job] = _undecided(jobs, decided, computations)
    if isinstance(jobs, list):  # of a known length, so that no more workers than needed are taken
        programs = sorted(programs, key=lambda job: job.alone)
    for verdict in sandbox.judge(programs) if programs else ():
        yield verdict
        while decided:
            yield decided.popleft()
    yield from decided
    if computations:
        yield from _compute(sandbox, computations)


def _undecided(
    jobs: Iterable[Job], decided: deque[Verdict], computations: list[Computation]
) -> Iterator[Job]:
    for job in jobs:
        step = decide(job)
        if isinstance(step, Verdict):
            decided.append(step)
        elif isinstance(step, Computation):
            computations.append(step)
        else:
            yield step


def _compute(sandbox: Sandbox, computations: list[Computation]) -> Iterator[Verdict]:
    """Judge answers whose arguments have to be computed."""
    steps = [replace(one.job, sample=place) for place, one in enumerate(computations)]
    calls = []
    for verdict, cases in sandbox.outputs(steps):
        one = computations[verdict.sample]
        step = one.finish(replace(verdict, sample=one.answer.sample), cases)
        if isinstance(step, Verdict):
            yield step
        else:
            calls.append(step)
    if calls:
        yield from sandbox.judge(calls)
