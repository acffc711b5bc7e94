"""``assay eval --until decided``: rounds of samples, and what is recorded about them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from assay import runs
from assay.errors import UsageError
from assay.pipeline import EvalConfig, Sampling, Until, evaluate, evaluate_until
from assay.progress import Silent
from assay.runs import Result, RunReader
from assay.types import Benchmark
from tests.conftest import write_completions
from tests.in_process import run_command
from tests.runs.consistent import agree

ROUNDS = 12
WRONG = "def f(): pass"


class Notes(Silent):
    """Keep all notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def evaluated(mini: Benchmark, tmp_path: Path) -> Callable[[str, float], EvalConfig]:
    """Return a function that writes a model with this pass rate, and its settings."""

    def write(name: str, rate: float) -> EvalConfig:
        draw = random.Random(name)
        samples = [
            (problem.task_id, problem.reference if draw.random() < rate else WRONG)
            for problem in mini.problems
            for _ in range(ROUNDS)
        ]
        path = write_completions(tmp_path / f"{name}.jsonl", samples)
        return EvalConfig(
            "mini", tmp_path / "results", model=f"replay:{path}", sampling=Sampling(ROUNDS)
        )

    return write


def compare_with(
    baseline: Result, config: EvalConfig, notes: Notes, margin: float = 0.02
) -> Result:
    return evaluate_until(config, Until(baseline.run, margin, force=True), notes)


def test_a_large_difference_needs_few_rounds(
    evaluated: Callable[[str, float], EvalConfig],
) -> None:
    baseline, notes = evaluate(evaluated("weak", 0.1), Silent()), Notes()
    result = compare_with(baseline, evaluated("strong", 0.9), notes)
    found = result.sequential
    assert found is not None
    assert (found.decision, found.budget, found.baseline) == ("better", ROUNDS, baseline.run)
    assert 1 <= len(found.looks) < ROUNDS
    assert [one.rounds for one in found.looks] == list(range(1, len(found.looks) + 1))
    assert found.looks[-1].interval.low > 0
    # Only the samples of these rounds were judged, and all of them.
    assert result.results.samples == 20 * len(found.looks)
    assert (result.complete, result.results.completed) == (True, 20)
    assert not result.publishable
    assert result.marks[0] == "sequential"
    assert runs.read_result(result.path).sequential == found
    assert sum("round" in note for note in notes.notes) == len(found.looks)


@pytest.mark.slow
def test_the_same_call_resumes(evaluated: Callable[[str, float], EvalConfig]) -> None:
    baseline, notes = evaluate(evaluated("weak", 0.1), Silent()), Notes()
    config = evaluated("strong", 0.9)
    first = compare_with(baseline, config, notes)
    verdicts = (first.folder / "verdicts.jsonl").read_bytes()
    again = compare_with(baseline, config, notes)
    assert (again.run, again.sequential) == (first.run, first.sequential)
    assert (again.folder / "verdicts.jsonl").read_bytes() == verdicts
    assert len(RunReader(again.folder).verdicts) == first.results.samples


@pytest.mark.slow
def test_what_is_not_decided_ends_with_the_budget(
    evaluated: Callable[[str, float], EvalConfig],
) -> None:
    baseline = evaluate(evaluated("one", 0.5), Silent())
    config = evaluated("other", 0.5)
    result = compare_with(baseline, replace(config, sampling=Sampling(4)), Notes())
    assert result.sequential is not None
    assert result.sequential.decision == "undecided"
    assert (len(result.sequential.looks), result.results.samples) == (4, 80)


def test_another_protocol_is_refused(evaluated: Callable[[str, float], EvalConfig]) -> None:
    baseline = evaluate(evaluated("one", 0.5), Silent())
    with pytest.raises(UsageError, match="its protocol differs .origin.*settings of the baseline"):
        evaluate_until(evaluated("other", 0.5), Until(baseline.run), Silent())


def test_one_sample_per_problem_leaves_nothing_to_add(
    evaluated: Callable[[str, float], EvalConfig],
) -> None:
    config = evaluated("one", 0.5)
    baseline = evaluate(replace(config, sampling=Sampling(1)), Silent())
    with pytest.raises(UsageError, match="has one sample per problem"):
        evaluate_until(config, Until(baseline.run), Silent())


def test_greedy_samples_are_refused(evaluated: Callable[[str, float], EvalConfig]) -> None:
    baseline = evaluate(evaluated("one", 0.5), Silent())
    why = ("the parity gate was switched off",)
    greedy = replace(baseline, protocol=replace(baseline.protocol, origin=""), not_publishable=why)
    runs.write_result(agree(greedy))
    protocol = json.dumps(agree(greedy).protocol.to_json())
    (baseline.folder / "protocol.json").write_text(protocol)
    with pytest.raises(UsageError, match="is greedy"):
        evaluate_until(evaluated("other", 0.5), Until(baseline.run), Silent())


@pytest.mark.parametrize("margin", ["nan", "NaN", "0", "-1", "inf", "101"])
def test_a_margin_is_a_number_of_points(tmp_path: Path, margin: str) -> None:
    asked = ("--until", "decided", "--against", "x", "--margin", margin)
    done = run_command("eval", "mini", *asked, folder=tmp_path)
    assert (done.code, "--margin" in done.err) == (2, True)
    if margin != "0":
        with pytest.raises(UsageError, match="is not a share"):
            evaluate_until(EvalConfig("mini", tmp_path), Until("x", float(margin)), Silent())


def test_the_options_belong_together(tmp_path: Path) -> None:
    done = run_command("eval", "mini", "--until", "decided", folder=tmp_path)
    assert (done.code, "belong together" in done.err) == (2, True)
    done = run_command("eval", "mini", "--against", "x", folder=tmp_path)
    assert (done.code, "belong together" in done.err) == (2, True)
