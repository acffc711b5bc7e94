"""Executes contracts/*.yaml, and shows that wrong subjects break them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

CONTRACTS = sorted((Path(__file__).parents[1] / "contracts").glob("*.yaml"))


def violations(contract: dict[str, Any], subject: Callable[..., float]) -> Iterator[str]:
    """Ids of the obligations and falsification tests that ``subject`` breaks."""
    cases = [
        {"n": n, "c": c, "k": k}
        for n in range(1, contract["domain"]["max_n"] + 1)
        for c in range(n + 1)
        for k in range(1, n + 1)
    ]
    for obligation in contract["obligations"]:
        rule = compile(obligation["holds"], obligation["id"], "eval")
        if not all(eval(rule, {"f": subject, "abs": abs}, case) for case in cases):
            yield obligation["id"]
    for test in contract["falsification_tests"]:
        if abs(subject(**test["given"]) - test["expect"]) > 1e-12:
            yield test["id"]


def load(path: Path) -> tuple[dict[str, Any], Callable[..., float]]:
    contract = yaml.safe_load(path.read_text())
    module, _, name = contract["subject"].partition(":")
    return contract, getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("path", CONTRACTS, ids=lambda path: path.stem)
def test_contract_holds(path: Path) -> None:
    contract, subject = load(path)
    assert len(contract["obligations"]) >= 3
    assert len(contract["falsification_tests"]) >= 3
    assert list(violations(contract, subject)) == []


@pytest.mark.parametrize(
    ("wrong", "broken"),
    [
        (lambda n, c, k: 1 - (1 - c / n) ** k, "not-the-biased-estimator"),
        (lambda n, c, k: c / n * k, "bounded"),
        (lambda n, c, k: 1 - c / n, "monotone-in-c"),
        (lambda n, c, k: float(c > 0), "pass-at-1-is-the-mean"),
    ],
)
def test_a_wrong_estimator_breaks_the_contract(wrong: Callable[..., float], broken: str) -> None:
    contract, _ = load(CONTRACTS[0])
    assert broken in list(violations(contract, wrong))
