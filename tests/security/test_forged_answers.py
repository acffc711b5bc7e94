"""Forged answers to questions for a literal or a call: none passes, and none becomes invalid."""

from __future__ import annotations

from pathlib import Path

import pytest

import assay
from assay import codec, plain
from assay.types import Answer, Benchmark, Cases, Problem, Tests
from tests.security.forgeries_expressions import (
    ARGUMENT,
    CODE,
    FORGED_CALLS,
    FORGED_LITERALS,
    OUTPUT,
    ForgedAnswer,
)

EQUAL = "def matcher():\n    return lambda arguments, expected, got: got == expected\n"
QUESTIONS = {
    "literal": (FORGED_LITERALS, OUTPUT, Tests("f", EQUAL)),
    "call": (FORGED_CALLS, f"f({ARGUMENT})", Tests("answer", EQUAL, CODE)),
}


def question(kind: str) -> Benchmark:
    """Return a benchmark with one problem: what f(17) returns, or for which input it is 55."""
    _, reference, tests = QUESTIONS[kind]
    expected = {"base": [plain.encode(int(OUTPUT))]}
    cases = Cases({"base": [[]]}, expected, codec.digest(expected))
    whole = Tests(
        tests.entry_point, tests.code, tests.preamble, "separated", cases, answer=Answer(kind, "f")
    )
    problem = Problem("Forged/0", "", reference, whole)
    return Benchmark("forged", "1", codec.digest(kind), (problem,))


@pytest.mark.parametrize("kind", QUESTIONS)
def test_no_forged_answer_passes(kind: str) -> None:
    forged, reference, _ = QUESTIONS[kind]
    answers = [one.answer for one in forged]
    verdicts = assay.judge([("Forged/0", a) for a in (*answers, reference)], question(kind))
    assert verdicts.pop().status == "pass"
    assert [(f.name, v.detail) for f, v in zip(forged, verdicts, strict=True)
            if v.status != "fail"] == []  # fmt: skip
    assert {v.reason for v in verdicts} <= {"unparsable", "wrong-answer"}
    assert {v.integrity for v in verdicts} == {"separated"}


def test_the_forged_answers_are_well_formed() -> None:
    for forged in (FORGED_LITERALS, FORGED_CALLS):
        assert len({one.answer for one in forged}) == len({one.name for one in forged})
        assert len(forged) == len({one.name for one in forged}) >= 20
        assert sum(one.passes_upstream for one in forged) >= 10


def test_documents_give_the_right_counts() -> None:
    every = (*FORGED_LITERALS, *FORGED_CALLS)
    docs = Path(__file__).parents[2] / "docs"
    passing = sum(one.passes_upstream for one in every)
    page = (docs / "newer-benchmarks.md").read_text()
    assert f"Of {len(every)} [forged answers](sandbox.md#forged-passes), {passing} pass" in page
    assert f"{len(every)} forged answers" in (docs / "sandbox.md").read_text()


def passes_upstream(forged: ForgedAnswer, kind: str) -> bool:
    """Judge as upstream does, in the sandbox: a rule on the text, then an assertion."""
    text = forged.answer
    if ("f(" not in text) if kind == "call" else (f"f({ARGUMENT})" in text):
        return False
    code = f"{CODE}\nassert {OUTPUT} == {text}\ndef passed():\n    return True\n"
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
