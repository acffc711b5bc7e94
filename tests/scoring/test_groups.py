"""Scores of groups of tests: each with those before it."""

from __future__ import annotations

import pytest

from assay.scoring import group_scores
from assay.types import Verdict


def verdict(task_id: str, status: str, base: int, plus: int) -> Verdict:
    groups = {"base": (base, 2), "plus": (plus, 10)}
    return Verdict(task_id, 0, status, "x", groups=groups)  # type: ignore[arg-type]


def test_a_group_counts_with_all_before_it() -> None:
    verdicts = [
        verdict("right", "pass", 2, 10),
        verdict("base only", "fail", 2, 9),
        verdict("plus only", "fail", 1, 10),
        Verdict("no code", 0, "fail", "no-code"),
        Verdict("ours", 0, "invalid", "sandbox-error"),
    ]
    base, plus = group_scores([v.task_id for v in verdicts], verdicts, ["base", "plus"])
    assert (base.name, plus.name) == ("base", "plus")
    assert base.estimates[0].value == pytest.approx(2 / 4)
    assert plus.estimates[0].value == pytest.approx(1 / 4)
    assert base.estimates[0].problems == 4
    assert base.tests_passed == pytest.approx((1 + 1 + 0.5 + 0) / 4)
    assert plus.tests_passed == pytest.approx((1 + 0.9 + 1 + 0) / 4)


def test_no_groups_no_scores() -> None:
    assert group_scores(["a"], [Verdict("a", 0, "pass", "passed")], []) == []
