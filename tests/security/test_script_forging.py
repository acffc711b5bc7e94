"""Programs on standard input that cheat: none passes and none leaves the score."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.data import text_cases
from assay.types import Job, Limits, Program, Tests
from tests.security.forgeries_scripts import ADD, EXAMPLES, HIDDEN, SCRIPT_FORGERIES
from tests.security.in_tiers import COSTLY_TIERS, TIERS, Step, judge_in

LIMITS = Limits(cpu_s=4, call_cpu_s=1, wall_s=3)


def job(name: str, code: str, comparison: str, *, run_all: bool = False) -> Job:
    cases = text_cases.pack([*EXAMPLES, *HIDDEN], comparison=comparison, run_all=run_all)
    tests = Tests("", "", integrity="separated", texts=cases)
    return Job(name, 0, Program(code, "x"), tests, LIMITS)


@pytest.mark.parametrize("tier", TIERS)
def test_no_forged_script_passes_or_leaves_the_score(tier: str) -> None:
    check_forged_scripts(tier, run_all=False)


@pytest.mark.parametrize("tier", COSTLY_TIERS)
def test_no_forged_script_passes_if_all_cases_run(tier: str) -> None:
    check_forged_scripts(tier, run_all=True)


def check_forged_scripts(tier: str, *, run_all: bool) -> None:
    comparisons = ("livecodebench", "tolerant", "exact")
    jobs = [job("honest", ADD, "livecodebench")]
    for number, forgery in enumerate(SCRIPT_FORGERIES):
        jobs.append(job(forgery.name, forgery.code, comparisons[number % 3], run_all=run_all))
        if number % 10 == 0:
            jobs.append(job(f"honest {number}", ADD, "exact"))
    verdicts = {verdict.task_id: verdict for verdict in judge_in(tier, [Step(jobs)], workers=2)}
    assert len(verdicts) == len(jobs)
    for name, verdict in verdicts.items():
        expected = "pass" if name.startswith("honest") else "fail"
        assert verdict.status == expected, (name, verdict)
        if expected == "fail":
            right, cases = verdict.groups["cases"]
            assert right <= len(EXAMPLES) < cases, (name, verdict)


def test_the_forged_scripts_are_well_formed() -> None:
    assert len({forgery.name for forgery in SCRIPT_FORGERIES}) == len(SCRIPT_FORGERIES)
    for forgery in SCRIPT_FORGERIES:
        compile(forgery.code, forgery.name, "exec")  # compiled only: it runs in the sandbox
        assert forgery.why, forgery.name


def test_the_document_gives_their_number() -> None:
    text = (Path(__file__).parents[2] / "docs/stdin.md").read_text()
    assert f"{len(SCRIPT_FORGERIES)} programs" in text
