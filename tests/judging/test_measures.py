"""Measures: a number for each program that passed, and their mean in the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assay.data import codec, plain
from assay.judging.measures import with_measures
from assay.pipeline import ScoreConfig, score
from assay.progress import Silent
from assay.report.summary import summarize
from assay.runs import Result, RunReader, read_result, write_result
from assay.sandbox import Sandbox, open_sandbox
from assay.types import Benchmark, Cases, Measure, Problem, Tests
from tests.conftest import write_completions

NO_ARGUMENTS = {"length": [plain.encode([])]}
MATCHER = "def matcher():\n    return lambda arguments, expected, got: True\n"
FAILS = "# fails when it is measured\n"


def probe(_problem: Problem, program: str) -> tuple[str, Tests]:
    answer = "1 / 0" if FAILS in program else str(len(program))
    cases = Cases(NO_ARGUMENTS, {}, codec.digest(NO_ARGUMENTS))
    code = f"def measure():\n    return {answer}\n"
    return code, Tests("measure", MATCHER, integrity="separated", cases=cases)


def read(outputs: Cases) -> float | None:
    return float(plain.decode(outputs.expected["length"][0]))


LENGTH = Measure("program length", 1, probe, read)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    opened = open_sandbox("process", 2)
    yield opened
    opened.close()


@pytest.fixture
def scored(mini: Benchmark, tmp_path: Path) -> Result:
    """Return a run with four samples that pass, two of them the same, and one that fails."""
    first, second, third = (p for p in mini.problems[:3])
    answers = [
        (first.task_id, first.reference),
        (first.task_id, first.reference),
        (second.task_id, second.reference),
        (second.task_id, FAILS + second.reference),
        (third.task_id, f"def {third.tests.entry_point}(*_):\n    return None\n"),
        (third.task_id, f"def {third.tests.entry_point}(*_):\n    return 17\n"),
    ]
    samples = write_completions(tmp_path / "s.jsonl", answers)
    config = ScoreConfig("mini", tmp_path / "results", samples_file=str(samples), partial=True)
    return score(config, Silent())


def test_only_programs_that_passed_are_measured(
    scored: Result, mini: Benchmark, sandbox: Sandbox
) -> None:
    assert scored.results.measures == {}
    measured = replace(mini, measures=(LENGTH,))
    found = with_measures(scored, measured, RunReader(scored.folder), sandbox, Silent())
    (one,) = found.results.measures.values()
    first, second = (len(p.reference) for p in mini.problems[:2])
    assert one.value == pytest.approx((first + second) / 2, abs=1)  # a final newline may go
    assert (one.problems, one.samples, one.unmeasured) == (2, 3, 1)
    write_result(found)
    assert read_result(found.path).results.measures == found.results.measures
    (line,) = (line for line in summarize(found) if "program length" in line)
    assert line.endswith("passed programs of 2 problems, 1 program not measured")


def test_without_measures_a_result_stays_as_it_is(
    scored: Result, mini: Benchmark, sandbox: Sandbox
) -> None:
    run = RunReader(scored.folder)
    assert with_measures(scored, mini, run, sandbox, Silent()) is scored
    assert '"measures"' not in scored.path.read_text()
