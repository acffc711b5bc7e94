"""Decide about answers that need no execution, and turn the others into programs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from assay import codec, plain
from assay.extract.answers import UNPARSABLE, Decision, Execution, answer_kinds
from assay.sandbox import Sandbox
from assay.types import Cases, Job, Verdict

NOT_DATA = Decision(False, UNPARSABLE, "an argument is more than plain data")
TOO_LARGE = Decision(
    False, UNPARSABLE, f"the arguments have more than {plain.LARGE:,} items and characters"
)


def decide(job: Job, sandbox: Sandbox) -> Verdict | Job:
    """Return the verdict on an answer, or the job that a sandbox can judge.

    Arguments of an answer that have to be computed are computed here, in the sandbox. They are few:
    34 of 8,800 recorded answers have any.
    """
    answer = job.tests.answer
    if answer is None:
        return job
    found = answer_kinds.get(answer.kind).check(job.program.code, job.tests)
    if isinstance(found, Decision):
        return _verdict(job, found)
    if found.arguments:
        return _with_arguments(job, found, sandbox)
    return replace(job, program=replace(job.program, code=found.code))


def _with_arguments(job: Job, found: Execution, sandbox: Sandbox) -> Verdict | Job:
    """Compute the arguments in a separate process. Only plain data go on from there."""
    cases = job.tests.cases
    assert cases is not None
    wanted = Cases({name: [[]] for name in cases.inputs}, {}, codec.digest(found.arguments))
    program = replace(job.program, code=found.arguments)
    step = replace(job, program=program, tests=replace(job.tests, cases=wanted))
    ((verdict, computed),) = sandbox.outputs([step])
    if computed is None:
        return replace(verdict, groups=dict.fromkeys(cases.expected, (0, 1)))
    if plain.has_opaque(list(computed.expected.values())):
        return _verdict(job, NOT_DATA)
    inputs = computed.expected
    if any(not isinstance(arguments, list) for (arguments,) in inputs.values()):  # a digest
        return _verdict(job, TOO_LARGE)
    called = Cases(inputs, cases.expected, codec.digest([inputs, cases.expected]))
    program = replace(job.program, code=found.code)
    return replace(job, program=program, tests=replace(job.tests, cases=called))


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
    )


def judge_jobs(sandbox: Sandbox, jobs: Iterable[Job]) -> Iterator[Verdict]:
    """Yield one verdict per job, in any order. Only what has to be executed goes to the sandbox.

    Of a list, what is judged alone comes last: it waits for all others, which wait for it.
    """
    if isinstance(jobs, list):
        found = [decide(job, sandbox) for job in jobs]
        yield from (verdict for verdict in found if isinstance(verdict, Verdict))
        if rest := [job for job in found if isinstance(job, Job)]:
            yield from sandbox.judge(sorted(rest, key=lambda job: job.alone))
        return
    decided: deque[Verdict] = deque()
    for verdict in sandbox.judge(_undecided(jobs, decided, sandbox)):
        yield verdict
        while decided:
            yield decided.popleft()
    yield from decided


def _undecided(jobs: Iterable[Job], decided: deque[Verdict], sandbox: Sandbox) -> Iterator[Job]:
    for job in jobs:
        found = decide(job, sandbox)
        if isinstance(found, Verdict):
            decided.append(found)
        else:
            yield found
