"""What dishonest programs get: a forged pass only where the tests share their interpreter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from assay.sandbox import Sandbox, open_sandbox
from assay.sandbox.selftest.attacks import BATTERY
from assay.types import Integrity, Job, Limits, Program, Tests, Verdict
from tests.security.corpus import CORPUS
from tests.security.forgeries import (
    ENTRY_POINT,
    FORGERIES,
    HONEST_BUT_WRONG,
    LOOP_TESTS,
    REFERENCE,
    TESTS,
    Forgery,
)
from tests.security.in_tiers import TIERS, Step, assert_all_failed, judge_in

LIMITS = Limits(cpu_s=2, wall_s=5)
SHORT = Limits(cpu_s=2, wall_s=5)  # for the whole corpus, of which many wait for their end
PRINTS = "\nprint([1, 2, 3], running_total([1, 2, 3]))\n"


def job(name: str, code: str, tests: str, integrity: Integrity, limits: Limits = LIMITS) -> Job:
    """The one place that knows how a job is made."""
    return Job(name, 0, Program(code, "x"), Tests(ENTRY_POINT, tests, integrity=integrity), limits)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    opened = open_sandbox("process", workers=2)
    yield opened
    opened.close()


def judged(sandbox: Sandbox, jobs: Iterable[Job]) -> dict[str, Verdict]:
    return {verdict.task_id: verdict for verdict in sandbox.judge(jobs)}


def forged(sandbox: Sandbox, integrity: Integrity) -> dict[str, Verdict]:
    return judged(sandbox, (job(f.name, f.code, f.tests, integrity) for f in FORGERIES))


def test_the_corpus_is_well_formed() -> None:
    assert len(FORGERIES) >= 45
    assert len(CORPUS) >= 220
    assert len({forgery.name for forgery in CORPUS}) == len(CORPUS)
    assert len({forgery.code for forgery in CORPUS}) == len(CORPUS)
    for forgery in CORPUS:
        compile(forgery.code, forgery.name, "exec")  # compiled only: it runs in the sandbox
        assert forgery.why, forgery.name


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "docs/sandbox.md"])
def test_documents_give_the_right_counts(name: str) -> None:
    text = (Path(__file__).parents[2] / name).read_text()
    assert f"{len(BATTERY)} attacks" in text
    assert f"{len(CORPUS)} programs" in text


@pytest.mark.parametrize("integrity", ["shared", "separated"])
@pytest.mark.parametrize("tests", [TESTS, LOOP_TESTS], ids=["asserts", "loop"])
def test_honest_programs_get_what_they_deserve(
    sandbox: Sandbox, tests: str, integrity: Integrity
) -> None:
    programs = {"right": REFERENCE, "wrong": HONEST_BUT_WRONG}
    verdicts = judged(sandbox, (job(n, code, tests, integrity) for n, code in programs.items()))
    assert verdicts["right"].status == "pass", verdicts["right"].detail
    assert (verdicts["wrong"].status, verdicts["wrong"].reason) == ("fail", "wrong-answer")


@pytest.fixture(scope="module")
def shared(sandbox: Sandbox) -> dict[str, Verdict]:
    return forged(sandbox, "shared")


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.name)
def test_in_the_tests_interpreter(shared: dict[str, Verdict], forgery: Forgery) -> None:
    verdict = shared[forgery.name]
    seen = f"{verdict.status}: {verdict.reason} {verdict.detail}"
    assert (verdict.status == "pass") == forgery.passes_shared, f"{seen} (why: {forgery.why})"
    assert verdict.integrity == "shared"


def corpus_jobs(forgeries: Sequence[Forgery] = CORPUS) -> list[Job]:
    """Return forgeries, with honest samples between: what they leave may be found."""
    jobs = []
    for number, forgery in enumerate(forgeries):
        if number % 10 == 0:
            for worker in range(2):
                name = f"honest {number} {worker}"
                jobs.append(job(name, REFERENCE + PRINTS, forgery.tests, "separated"))
        jobs.append(job(forgery.name, forgery.code, forgery.tests, "separated", SHORT))
    return jobs


def check_corpus(verdicts: list[Verdict], forgeries: Sequence[Forgery] = CORPUS) -> None:
    """Fail unless the honest passed and all others failed.

    Not "pass" alone: a failure that becomes ours ("invalid") leaves the count.
    """
    honest = [v for v in verdicts if v.task_id.startswith("honest ")]
    assert len(verdicts) - len(honest) == len(forgeries)
    assert_all_failed([v for v in verdicts if v not in honest])
    assert {(v.status, v.reason) for v in honest} == {("pass", "passed")}
    assert {verdict.integrity for verdict in verdicts} == {"separated"}


@pytest.mark.slow
def test_with_the_tests_in_a_process_apart(sandbox: Sandbox) -> None:
    """No program of the corpus passes or becomes invalid.

    If the program's process ever held the tests, 13 programs of forgeries_memory.py pass.
    """
    check_corpus(list(sandbox.judge(corpus_jobs())))


@pytest.mark.whole
@pytest.mark.parametrize("tier", TIERS)
def test_the_corpus_in_every_tier(tier: str) -> None:
    check_corpus(judge_in(tier, [Step(corpus_jobs())], workers=2, timeout_s=900))


@pytest.mark.slow
@pytest.mark.parametrize(("tier", "first"), [("user", 0), ("landlock", 1)])
def test_a_part_of_the_corpus_in_the_other_tiers(tier: str, first: int) -> None:
    part = CORPUS[first::4]
    check_corpus(judge_in(tier, [Step(corpus_jobs(part))], workers=2, timeout_s=900), part)
