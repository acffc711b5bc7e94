"""The registry of qa's questions: order, one that decides, one more from a single function."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.data import codec
from assay.errors import ModelError
from assay.models import EngineOptions, parse_reference
from assay.quality.policy import load_policy
from assay.quality.qa import Evidence, Examination, QaCheck, QaItem, Subject, examine, qa_checks
from assay.quality.qa.checks.recorded_scores import _score
from tests.conftest import write_completions
from tests.runs.test_compare import flips


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """Forget afterwards what a test registers."""
    qa_checks.names()
    before = dict(qa_checks._items)
    yield
    qa_checks._items.clear()
    qa_checks._items.update(before)


def run_examination(tmp_path: Path, tier: str = "{}") -> Evidence:
    samples = write_completions(tmp_path / "s.jsonl", [("t", "x = 1")])
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"tiers:\n  mine: {tier}\n")
    subject = Subject(parse_reference(f"replay:{samples}"), EngineOptions(), tmp_path)
    return examine(subject, load_policy(policy), "mine")


def always(order: int, *items: QaItem, is_decisive: bool = False) -> QaCheck:
    return QaCheck(order, lambda _: True, lambda _: list(items), is_decisive)


def test_the_questions_there_are_in_their_order() -> None:
    names = sorted(qa_checks.names(), key=lambda name: qa_checks.get(name).order)
    assert names == ["check", "perplexity", "throughput", "parity", "scores", "baseline"]
    assert [name for name in names if qa_checks.get(name).is_decisive] == ["check"]


def test_a_bound_on_more_samples_than_there_are_says_what_to_run() -> None:
    result, _ = flips(0, 0, 5, 5)
    item = _score("mini", "pass_at_10", 0.5, result)
    assert item.decision == "INCONCLUSIVE"
    assert item.reason == (
        f"{result.run} does not contain it: it has 1 sample per problem; run 'assay eval mini "
        "--n-samples 10'"
    )


def test_one_more_is_one_registered_function(tmp_path: Path) -> None:
    assert run_examination(tmp_path).items == ()
    qa_checks.register("licence")(always(60, QaItem("licence", "GO", "MIT")))
    evidence = run_examination(tmp_path)
    assert evidence.decision == "GO"
    assert codec.to_json(evidence)["items"] == (
        {"name": "licence", "decision": "GO", "reason": "MIT", "figures": {}},
    )


def test_nothing_is_asked_after_a_no_go_of_one_that_decides(tmp_path: Path) -> None:
    qa_checks.register("later")(always(7, QaItem("later", "GO", "")))
    qa_checks.register("no")(always(6, QaItem("no", "NO-GO", "")))
    assert [item.name for item in run_examination(tmp_path).items] == ["no", "later"]
    qa_checks.register("first")(always(5, QaItem("first", "NO-GO", ""), is_decisive=True))
    assert [item.name for item in run_examination(tmp_path).items] == ["first"]


def test_what_cannot_be_found_out_is_inconclusive(tmp_path: Path) -> None:
    def fail(_: Examination) -> list[QaItem]:
        raise ModelError("the engine is gone")

    qa_checks.register("broken")(QaCheck(1, lambda _: True, fail))
    evidence = run_examination(tmp_path)
    assert evidence.items == (QaItem("broken", "INCONCLUSIVE", "the engine is gone"),)
    assert evidence.decision == "INCONCLUSIVE"
