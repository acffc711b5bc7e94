"""``assay qa --baseline``: not worse by the margin, or not enough data to say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay import runs
from assay.models import EngineOptions, open_model, parse_reference
from assay.quality.policy import load_policy
from assay.quality.qa import QaItem, Subject, examine
from tests.conftest import write_completions
from tests.runs.test_compare import flips


def examine_flips(folder: Path, gained: int, lost: int, problems: int, tier: str = "{}") -> QaItem:
    """Return the answer for a model that gains and loses problems of a baseline."""
    samples = write_completions(folder / "s.jsonl", [("t", "x = 1")])
    reference = f"replay:{samples}"
    identity = open_model(reference, EngineOptions()).identity
    both = problems // 2
    results = flips(gained, lost, both, problems - both - gained - lost)
    for number, (result, model) in enumerate(zip(results, (None, identity), strict=True)):
        run = f"mini_20260101_00000{number}"
        runs.write_result(
            replace(
                result,
                run=run,
                path=folder / f"{run}.json",
                model_identity=model,
                model=model.name if model else result.model,
            )
        )
    policy = folder / "policy.yaml"
    policy.write_text(f"tiers:\n  mine: {tier}\n")
    subject = Subject(
        parse_reference(reference), EngineOptions(), folder, baseline="mini_20260101_000000"
    )
    evidence = examine(subject, load_policy(policy), "mine")
    (item,) = evidence.items
    assert evidence.decision == item.decision
    return item


@pytest.mark.parametrize(
    ("gained", "lost", "problems", "decision"),
    [
        (0, 0, 164, "GO"),  # 1.9 points at most
        (1, 1, 164, "INCONCLUSIVE"),
        (0, 3, 164, "INCONCLUSIVE"),
        (5, 5, 1140, "GO"),
        (0, 60, 1140, "NO-GO"),
        (30, 0, 1140, "GO"),
    ],
)
def test_the_interval_decides(
    tmp_path: Path, gained: int, lost: int, problems: int, decision: str
) -> None:
    item = examine_flips(tmp_path, gained, lost, problems)
    assert item.decision == decision
    assert f"gained {gained}, lost {lost} of {problems}; at least -2" in item.reason
    assert ("could show" in item.reason) == (decision == "INCONCLUSIVE")


def test_the_margin_is_a_setting_of_the_tier(tmp_path: Path) -> None:
    assert examine_flips(tmp_path, 0, 3, 164, "{margin: 0.1}").decision == "GO"


def test_a_result_that_its_folder_denies_is_not_used(tmp_path: Path) -> None:
    examine_flips(tmp_path, 0, 0, 164)
    run = tmp_path / "mini_20260101_000001"
    run.mkdir()
    (run / "protocol.json").write_text('{"hash": "0"}')
    subject = Subject(
        parse_reference(f"replay:{tmp_path / 's.jsonl'}"), EngineOptions(), tmp_path,
        baseline="mini_20260101_000000",
    )  # fmt: skip
    (item,) = examine(subject, load_policy(tmp_path / "policy.yaml"), "mine").items
    assert item.decision == "INCONCLUSIVE"
    assert "no complete result of this model" in item.reason


def test_a_result_of_another_model_is_not_used(tmp_path: Path) -> None:
    item = examine_flips(tmp_path, 0, 0, 164)
    for path in tmp_path.glob("mini_20260101_000001.*"):
        path.unlink()
    subject = Subject(
        parse_reference(f"replay:{tmp_path / 's.jsonl'}"), EngineOptions(), tmp_path,
        baseline="mini_20260101_000000",
    )  # fmt: skip
    (again,) = examine(subject, load_policy(tmp_path / "policy.yaml"), "mine").items
    assert (item.decision, again.decision) == ("GO", "INCONCLUSIVE")
    assert "no complete result of this model" in again.reason
