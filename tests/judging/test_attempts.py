"""Which program of a text is judged next, and which verdict counts."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay.errors import UsageError
from assay.extract.workers import Extraction
from assay.judging import JudgeTask, begin, judge_extracted
from assay.types import Benchmark, Job, Problem, Program, Status, Tests, Verdict
from tests.judging.test_alternatives import FUNCTION, RIGHT, WRONG

TASK = JudgeTask(Problem("t", "", "", Tests("f", "")))
CUT, UNCUT = Program("cut", "demo"), Program("uncut", "uncut")
STATUSES = st.sampled_from(get_args(Status))


def verdict_on(job: Job, status: Status) -> Verdict:
    return Verdict(job.task_id, job.sample, status, job.program.rule)


@given(STATUSES, STATUSES, st.booleans())
def test_the_uncut_form_is_judged_if_the_cut_one_fails(
    first: Status, second: Status, truncated: bool
) -> None:
    attempts, job = begin(TASK, Extraction(CUT, alternative=UNCUT), 3, truncated=truncated)
    assert isinstance(job, Job)
    found = attempts.settle(verdict_on(job, first))
    assert isinstance(found, Job) == (first == "fail")
    if isinstance(found, Job):
        assert (found.program, found.sample) == (UNCUT, 3)
        found = attempts.settle(verdict_on(found, second))
    assert isinstance(found, Verdict)
    both_fail = first == second == "fail"
    counted = "demo" if both_fail or first != "fail" else "uncut"
    if truncated and found.status == "fail":
        assert (found.reason, found.detail) == ("truncated", counted)
    else:
        assert found.reason == counted
    assert attempts.programs == ((CUT, UNCUT) if first == "fail" else (CUT,))


def test_a_text_without_a_program_is_not_executed() -> None:
    nothing = Extraction(Program("", "none"), reason="no-code", detail="no code")
    for truncated, reason in ((False, "no-code"), (True, "truncated")):
        attempts, verdict = begin(TASK, nothing, truncated=truncated)
        assert isinstance(verdict, Verdict)
        assert (verdict.status, verdict.reason, attempts.programs) == ("fail", reason, ())
    _, verdict = begin(replace(TASK, unscorable="its reference fails"), Extraction(CUT))
    assert isinstance(verdict, Verdict)
    assert (verdict.status, verdict.reason) == ("invalid", "unscorable")


def test_texts_are_judged_in_rounds() -> None:
    rounds: list[list[str]] = []

    def execute(jobs: list[Job]) -> list[Verdict]:
        rounds.append([job.program.code for job in jobs])
        passing = {"uncut", "whole"}
        return [verdict_on(j, "pass" if j.program.code in passing else "fail") for j in jobs[::-1]]

    texts = [Extraction(CUT, alternative=UNCUT), Extraction(Program("whole", "whole"))]
    found = judge_extracted([(TASK, one) for one in (*texts, Extraction(CUT))], execute)
    assert [(v.sample, v.status) for v in found] == [(0, "pass"), (1, "pass"), (2, "fail")]
    assert rounds == [["cut", "whole", "cut"], ["uncut"]]


def test_a_judge_takes_completions_like_a_remote_one(mini: Benchmark) -> None:
    first = mini.problems[0]
    scale = next(p for p in mini.problems if p.tests.entry_point == "celsius_to_fahrenheit")
    texts = [
        (first.task_id, f"Sure!\n```python\n{first.reference}```"),
        (first.task_id, "I cannot."),
        (scale.task_id, FUNCTION + RIGHT),
        (scale.task_id, FUNCTION + WRONG),
    ]
    with assay.Judge(mini, workers=1) as judge:
        found = judge.judge_completions(texts)
        with pytest.raises(UsageError, match="is not a task of mini"):
            judge.judge_completions({"nobody": ""})
    assert [(v.sample, v.status) for v in found] == list(enumerate(("pass", "fail") * 2))
    assert [v.rule for v in found] == ["fenced", "none", "uncut", "demo"]
