"""Best of N inside the pipeline: what is executed, and what is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from assay import models
from assay.pipeline import EvalConfig, ProblemSelection, evaluate
from assay.pipeline.best_of_n import best_of_n
from assay.runs import RunWriter, open_run
from assay.sandbox import Capabilities, Stage, run_here
from assay.scoring import BestOfN
from assay.types import Benchmark, Cases, Completion, Job, ModelIdentity, Problem, Tests, Verdict
from tests.pipeline.test_pipeline import ScriptedModel, Watcher
from tests.test_protocol import BASE

C = TypeVar("C")
P = TypeVar("P")
R = TypeVar("R")
PROMPT = 'def f(x):\n    """Double.\n    >>> f(2)\n    4\n    """\n'
PROBLEM = Problem("a", PROMPT, "", Tests("f", "hidden", "", "separated"))
BENCHMARK = Benchmark("b", "1", "", (PROBLEM, replace(PROBLEM, task_id="b")))
PROGRAM = "def f(x):\n    return {}\n"


class FailingSandbox:
    """Answers as told by a program's last line; what is about to break breaks on our side."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def capabilities(self) -> Capabilities:
        return Capabilities("test", "", "")

    def judge(self, jobs: Iterable[Job]) -> Iterator[Verdict]:
        return (verdict for verdict, _ in self.outputs(jobs))

    def outputs(self, jobs: Iterable[Job]) -> Iterator[tuple[Verdict, Cases | None]]:
        for job in jobs:
            self.jobs.append(job)
            if "breaks" in job.program.code:
                yield Verdict(*job.key, "invalid", "sandbox-error"), None
            else:
                right = int("right" in job.program.code)
                yield (
                    Verdict(*job.key, "fail", "wrong-answer", groups={"examples": (right, 1)}),
                    None,
                )

    def run_stage(
        self,
        stage: Stage[C, P, R],
        items: Iterable[tuple[C, P] | None],
        answer: Callable[[Sequence[R]], None],
        count: int | None = None,  # noqa: ARG002
    ) -> None:
        run_here(self, stage, items, answer)

    def close(self) -> None: ...


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunWriter]:
    opened = open_run(tmp_path, BASE, ModelIdentity("m", "test", "w", "chat"))
    yield opened
    opened.close()


def add(
    run: RunWriter, task_id: str, values: Iterable[str], status: str = "fail", first: int = 0
) -> None:
    for sample, value in enumerate(values, first):
        text = PROGRAM.format(value)
        run.add_completion(Completion(task_id, sample, text, "stop", 1, 1, 1.0, 0, False))
        run.add_verdict(Verdict(task_id, sample, status, "reason"))  # type: ignore[arg-type]


def chosen_by_examples(run: RunWriter, sandbox: FailingSandbox) -> BestOfN | None:
    return best_of_n("examples", 4, BENCHMARK, "chat", run, sandbox, 0, Watcher())


def test_what_failed_on_our_side_is_left_out(run: RunWriter) -> None:
    add(run, "a", ["'breaks'", "'wrong'", "'right'"])
    add(run, "b", ["'breaks'", "'breaks too'"], status="pass")
    best = chosen_by_examples(run, FailingSandbox())
    assert best is not None
    assert best.chosen == {"a": 2}  # of b nothing is known
    assert (best.estimate.value, best.estimate.problems) == (0.0, 1)


def test_samples_without_a_verdict_are_left_out(run: RunWriter) -> None:
    add(run, "a", ["'right'"], status="invalid")
    add(run, "a", ["'wrong'", "'right'"], status="pass", first=1)
    run.add_completion(Completion("a", 3, "", "error", 0, 0, 0.0, 0, False, error="busy"))
    run.add_verdict(Verdict("a", 3, "invalid", "generation-error"))
    sandbox = FailingSandbox()
    best = chosen_by_examples(run, sandbox)
    assert best is not None
    assert best.chosen == {"a": 2}
    assert best.estimate.value == 1.0
    codes = [job.program.code.split("return ")[1].strip() for job in sandbox.jobs]
    assert sorted(codes) == ["'right'", "'wrong'"]  # of samples 1 and 2
    assert len({job.key for job in sandbox.jobs}) == 2


def test_nothing_to_choose_from_is_no_score(run: RunWriter) -> None:
    assert chosen_by_examples(run, FailingSandbox()) is None
    add(run, "a", ["'right'"], status="invalid")
    assert chosen_by_examples(run, FailingSandbox()) is None


def test_identical_programs_are_executed_once_and_never_with_the_hidden_tests(
    run: RunWriter,
) -> None:
    for task_id in ("a", "b"):
        add(run, task_id, ["'wrong'", "'right'", "'wrong'", "'right'"])
    sandbox = FailingSandbox()
    best = chosen_by_examples(run, sandbox)
    assert best is not None
    assert best.chosen == {"a": 1, "b": 1}
    assert sorted(job.task_id for job in sandbox.jobs) == ["a", "a", "b", "b"]
    assert len({(job.task_id, job.program.code) for job in sandbox.jobs}) == 4
    assert not any("hidden" in job.tests.code for job in sandbox.jobs)


@pytest.mark.parametrize(("method", "told"), [("logprob", True), ("first", False), ("", False)])
def test_engines_are_asked_for_log_probabilities_when_they_decide(
    mini: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, told: bool
) -> None:
    asked: list[models.EngineOptions] = []

    def open_model(_: str, options: models.EngineOptions, *__: object) -> ScriptedModel:
        asked.append(options)
        return ScriptedModel(mini)

    monkeypatch.setattr(models, "open_model", open_model)
    evaluate(EvalConfig("mini", tmp_path, problems=ProblemSelection("1"), select=method), Watcher())
    assert [options.logprobs for options in asked] == [told]
