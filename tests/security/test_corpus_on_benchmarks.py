"""The forging corpus on tasks of real benchmarks: none passes, none becomes invalid.

By default the corpus runs on a task of its own (``test_forging``). Programs that search memory pass
on all four benchmarks if a program's process ever held the tests or the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import pytest

from assay import benchmarks
from assay.sandbox import Sandbox, open_sandbox
from assay.types import Job, Limits, Problem, Program
from tests.security.corpus import CORPUS, adapt
from tests.security.forgeries import Forgery
from tests.security.in_tiers import assert_all_failed

BENCHMARKS = ("humaneval", "humanevalplus", "mbpp", "mbppplus")
NEWER = (
    "humanevalfix", "humaneval-pro", "mbpp-pro", "evoeval-subtle",
    "humaneval-infilling-random-span-light",
)  # fmt: skip
NAMES = (*BENCHMARKS, *NEWER)
TASKS = 6
LIMITS = Limits(cpu_s=2, call_cpu_s=2, wall_s=5)
# What forgeries answer when they have found nothing; a task that one of these solves is no test.
TRIVIAL = (
    "None", "[]", "True", "False", "0", "1", "''", "numbers", "[numbers]", "[None]", "{}", "()",
    "object()", "float('nan')", "float('inf')", "str(numbers)", "len(numbers)",
)  # fmt: skip


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    opened = open_sandbox("process", workers=2)
    yield opened
    opened.close()


def with_expected(sandbox: Sandbox, problems: list[Problem]) -> list[Problem]:
    """Return the problems with what their references return, where tests are cases."""
    jobs = [
        Job(p.task_id, 0, Program(p.reference, "x"), p.tests, Limits(wall_s=60))
        for p in problems
        if p.tests.cases
    ]
    found = {verdict.task_id: cases for verdict, cases in sandbox.outputs(jobs)}
    return [
        replace(p, tests=replace(p.tests, cases=found[p.task_id])) if p.task_id in found else p
        for p in problems
    ]


def choose_tasks(sandbox: Sandbox, name: str) -> list[Problem]:
    """Return a few tasks, from all over the benchmark, that no trivial answer solves."""
    separated = [p for p in benchmarks.load(name).problems if p.tests.integrity == "separated"]
    candidates = iter(separated[3 :: max(1, len(separated) // (3 * TASKS))])
    chosen: list[Problem] = []
    while len(chosen) < TASKS:
        some = list(islice(candidates, TASKS - len(chosen)))
        assert some, f"{name}: trivial answers solve too many tasks"
        chosen += not_trivial(sandbox, with_expected(sandbox, some))
    return chosen


def not_trivial(sandbox: Sandbox, problems: list[Problem]) -> list[Problem]:
    """Return the problems that no trivial answer solves."""
    programs = {answer: f"def running_total(numbers):\n    return {answer}\n" for answer in TRIVIAL}
    jobs = [job(p, name, code) for p in problems for name, code in programs.items()]
    verdicts = list(sandbox.judge(jobs))
    solved = {v.task_id.partition(" ")[0] for v in verdicts if v.status != "fail"}
    return [p for p in problems if p.task_id not in solved]


def job(problem: Problem, name: str, code: str, limits: Limits = LIMITS) -> Job:
    code = adapt(code, problem.tests.entry_point)
    return Job(f"{problem.task_id} {name}", 0, Program(code, "x"), problem.tests, limits)


def corpus_jobs(problems: list[Problem], forgeries: Sequence[Forgery]) -> Iterator[Job]:
    """Yield the forgeries, spread over the tasks, after an honest sample of each."""
    for number, problem in enumerate(problems):
        part = forgeries[number :: len(problems)]
        for place, forgery in enumerate(part):
            if place % 8 == 0:
                for worker in range(2):
                    yield job(problem, f"honest {place} {worker}", problem.reference, Limits())
            yield job(problem, forgery.name, forgery.code)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_part_of_the_corpus_is_not_passed(sandbox: Sandbox, name: str) -> None:
    """Every benchmark gets another part, so that each forgery meets one."""
    check_forgeries(sandbox, name, CORPUS[NAMES.index(name) :: len(NAMES)])


@pytest.mark.whole
@pytest.mark.parametrize("name", NAMES)
def test_the_corpus_is_not_passed(sandbox: Sandbox, name: str) -> None:
    check_forgeries(sandbox, name, CORPUS)


def check_forgeries(sandbox: Sandbox, name: str, forgeries: Sequence[Forgery]) -> None:
    jobs = list(corpus_jobs(choose_tasks(sandbox, name), forgeries))
    verdicts = list(sandbox.judge(jobs))
    assert len(verdicts) == len(jobs)
    honest = [v for v in verdicts if v.task_id.split()[1] == "honest"]
    assert {v.status for v in honest} == {"pass"}
    assert_all_failed([v for v in verdicts if v not in honest])
    assert {v.integrity for v in verdicts} == {"separated"}
