"""Forged answers to questions for a literal or a call: none passes, and none becomes invalid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.data import codec, plain
from assay.judging import JudgeTask
from assay.judging.stage import Judged, SampleStage, SampleText
from assay.sandbox import Stage, open_sandbox
from assay.serve.stage import JudgeWork, ServeStage
from assay.types import Answer, Benchmark, Cases, Job, Limits, Problem, Program, Tests
from tests.security.forgeries_expressions import (
    ARGUMENT,
    CODE,
    FORGED_CALLS,
    FORGED_LITERALS,
    FORGED_METHODS,
    METHODS,
    OUTPUT,
    ForgedAnswer,
)
from tests.security.in_tiers import NAMES, Step, assert_all_failed, judge_in

CALL = Answer("call", "f")
EQUAL = "def matcher():\n    return lambda arguments, expected, got: got == expected\n"
QUESTIONS = {
    "literal": (FORGED_LITERALS, OUTPUT, Tests("f", EQUAL, answer=Answer("literal", "f"))),
    "call": (FORGED_CALLS, f"f({ARGUMENT})", Tests("answer", EQUAL, CODE, answer=CALL)),
    "methods": (FORGED_METHODS, "f('a' * 55)", Tests("answer", EQUAL, METHODS, answer=CALL)),
}
REASONS = {"unparsable", "wrong-answer", "exception"}


def whole_tests(name: str) -> Tests:
    expected = {"base": [plain.encode(int(OUTPUT))]}
    cases = Cases({"base": [[]]}, expected, codec.digest(expected))
    return replace(QUESTIONS[name][2], integrity="separated", cases=cases)


def question(name: str) -> Benchmark:
    """Return a benchmark with one problem: what f(17) returns, or for which input it is 55."""
    problem = Problem("Forged/0", "", QUESTIONS[name][1], whole_tests(name))
    return Benchmark("forged", "1", codec.digest(name), (problem,))


@pytest.mark.parametrize("kind", QUESTIONS)
def test_no_forged_answer_passes(kind: str) -> None:
    forged, reference, _ = QUESTIONS[kind]
    answers = [one.answer for one in forged]
    verdicts = assay.judge([("Forged/0", a) for a in (*answers, reference)], question(kind))
    assert verdicts.pop().status == "pass"
    assert [(f.name, v.detail) for f, v in zip(forged, verdicts, strict=True)
            if v.status != "fail"] == []  # fmt: skip
    assert {v.reason for v in verdicts} <= REASONS
    assert {v.integrity for v in verdicts} == {"separated"}


@pytest.mark.slow
@pytest.mark.parametrize("tier", NAMES)
def test_no_forged_call_passes_in_any_tier(tier: str) -> None:
    """If arguments are computed in the function's process, 13 of them pass."""
    jobs = [
        Job(f"{name} {one.name}", 0, Program(one.answer, "x"), whole_tests(name))
        for name in ("call", "methods")
        for one in QUESTIONS[name][0]
    ]
    honest = Job("honest", 0, Program(QUESTIONS["methods"][1], "x"), whole_tests("methods"))
    verdicts = {v.task_id: v for v in judge_in(tier, [Step([*jobs, honest])], workers=2)}
    assert verdicts.pop("honest").status == "pass"
    assert len(verdicts) == len(jobs)
    assert_all_failed(list(verdicts.values()))
    assert {v.reason for v in verdicts.values()} <= REASONS


@pytest.mark.parametrize("argument", ["'a' * 70_000", "[1] * 70_000"])
def test_arguments_that_are_too_large_are_no_failure_of_a_worker(argument: str) -> None:
    """Large values cross as digests. As arguments, these must not end the tests' process."""
    (verdict,) = assay.judge([("Forged/0", f"f({argument})")], question("call"), workers=1)
    assert (verdict.status, verdict.reason) == ("fail", "unparsable")
    assert "more than 65,536 items and characters" in verdict.detail


def test_the_forged_answers_are_well_formed() -> None:
    for forged in (FORGED_LITERALS, FORGED_CALLS, FORGED_METHODS):
        assert len({one.answer for one in forged}) == len({one.name for one in forged})
        assert len(forged) == len({one.name for one in forged}) >= 20
        assert sum(one.passes_upstream for one in forged) >= 10


def test_documents_give_the_right_counts() -> None:
    every = (*FORGED_LITERALS, *FORGED_CALLS, *FORGED_METHODS)
    docs = Path(__file__).parents[2] / "docs"
    passing = sum(one.passes_upstream for one in every)
    page = (docs / "newer-benchmarks.md").read_text()
    assert f"Of {len(every)} [forged answers](sandbox.md#forged-passes), {passing} pass" in page
    assert f"{len(every)} forged answers" in (docs / "sandbox.md").read_text()


def passes_upstream(forged: ForgedAnswer, name: str) -> bool:
    """Judge as upstream does, in the sandbox: a rule on the text, then an assertion."""
    text = forged.answer
    if (f"f({ARGUMENT})" in text) if name == "literal" else ("f(" not in text):
        return False
    code = f"{QUESTIONS[name][2].preamble or CODE}\nassert {OUTPUT} == {text}\n"
    code += "def passed():\n    return True\n"
    tests = Tests("passed", "assert passed() is True\n", integrity="separated")
    problem = Problem("Upstream/0", "", "def passed():\n    return True\n", tests)
    benchmark = Benchmark("upstream", "1", codec.digest(text), (problem,))
    (verdict,) = assay.judge([("Upstream/0", code)], benchmark, workers=1)
    return verdict.status == "pass"


@pytest.mark.slow
@pytest.mark.parametrize("kind", QUESTIONS)
def test_many_pass_upstreams_assertion(kind: str) -> None:
    """The rules of upstream do not help: these answers are why ours are parsed."""
    forged = QUESTIONS[kind][0]
    found = {one.name: passes_upstream(one, kind) for one in forged}
    assert found == {one.name: one.passes_upstream for one in forged}


SLOW = f"f(sum(1 for _ in range(10**12)) * 0 + {ARGUMENT})"  # arguments that take for ever
QUICK = f"f(0 + {ARGUMENT})"


@pytest.mark.slow
@pytest.mark.parametrize("road", ["judge", "run", "service", "completions"])
def test_arguments_that_take_long_hold_back_no_other_answer(road: str) -> None:
    """Computed where answers are handed out, they let all others wait for their time limit.

    A run and a batch finish answers without computed arguments first. A service has no last one.
    """
    limits = Limits(cpu_s=3.0)
    benchmark = replace(question("call"), limits=limits)
    (problem,) = benchmark.problems
    answers = [SLOW, QUICK, benchmark.problems[0].reference, QUICK]
    if road == "judge":
        with assay.Judge(benchmark, workers=2) as judge:
            seen = [(v.sample, v.status) for v in judge.stream([("Forged/0", a) for a in answers])]
    else:
        seen = []
        sandbox = open_sandbox("process", 2)
        stage: Stage[Any, Any, Any]
        items: list[tuple[Any, Any]]
        if road == "run":
            stage = SampleStage(workers=1)
            items = [
                (JudgeTask(problem, limits), SampleText(n, a, False)) for n, a in enumerate(answers)
            ]
        else:
            stage = ServeStage(8, 1)
            kind: Any = "program" if road == "service" else "completion"
            items = [
                (JudgeTask(problem), JudgeWork(n, kind, a, limits, "Forged/0", position=n))
                for n, a in enumerate(answers)
            ]

        def answer(batch: Sequence[Any]) -> None:
            for one in batch:
                if isinstance(one, Judged):
                    seen.append((one.lines.verdict.sample, one.lines.verdict.status))
                else:
                    seen.append((one.number, one.status))

        try:
            sandbox.run_stage(stage, items, answer)
        finally:
            sandbox.close()
    assert seen.index((2, "pass")) < seen.index((0, "fail"))
    assert seen[-1] == (0, "fail") or road in ("judge", "run")
    assert sorted(seen) == [(0, "fail"), (1, "pass"), (2, "pass"), (3, "pass")]
