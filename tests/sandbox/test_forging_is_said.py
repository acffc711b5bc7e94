"""What every command says about forged verdicts is what ``integrity`` means."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from assay.cli._progress import ProgressDisplay
from assay.errors import SandboxError
from assay.pipeline import ScoreConfig, score
from assay.runs import RunReader
from assay.sandbox import open_sandbox
from assay.sandbox.host.tiers import CONTAINER, PODMAN, SEPARATED, SHARED, TIERS, Tier
from assay.sandbox.selftest.attacks import BATTERY
from assay.sandbox.selftest.battery import run_battery
from assay.types import Benchmark
from tests.conftest import Cli

FORGERIES = tuple(attack for attack in BATTERY if "shared" in attack.not_promised)


@pytest.mark.parametrize("tier", [*TIERS.values(), CONTAINER, PODMAN], ids=lambda tier: tier.name)
def test_every_tier_says_both(tier: Tier) -> None:
    assert SEPARATED in tier.guarantees
    assert SHARED in tier.gaps


@pytest.mark.parametrize("kind", ["process", pytest.param("wasm", marks=pytest.mark.wasm)])
def test_every_kind_says_both_and_the_selftest_shows_it(kind: str) -> None:
    """A sandbox that promises separated tests has to show that a forgery fails in them."""
    try:
        sandbox = open_sandbox(kind, 1)
    except SandboxError as error:
        pytest.skip(str(error))
    try:
        about = sandbox.capabilities()
        seen = list(run_battery(sandbox, FORGERIES))
    finally:
        sandbox.close()
    assert SEPARATED in about.guarantees
    assert SHARED in about.gaps
    by_name = {o.attack: o for o in seen}
    shared = [a.name for a in FORGERIES if a.integrity == "shared"]
    assert len(seen) == 2 * len(shared) == 4
    for name in shared:
        apart = by_name[f"{name}, tests separated"]
        assert not by_name[name].promised
        assert apart.promised
        assert apart.contained, apart
    assert not by_name["object that equals everything"].contained


@pytest.mark.slow
def test_doctor_and_list_print_both(assay: Cli) -> None:
    found = json.loads(assay("sandbox", "doctor", "--json").stdout)["tiers"]
    kinds = json.loads(assay("sandbox", "list", "--workers", "1", "--json").stdout)
    for about in [*found, *(kind for kind in kinds if not kind["refusal"])]:
        assert SEPARATED in about["guarantees"]
        assert SHARED in about["gaps"]


def test_samples_that_never_ran_are_neither_shared_nor_separated(
    mini: Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``mini/19`` has shared tests."""
    from assay.cli.eval import show

    right = {p.task_id: p.reference for p in mini.problems}
    lines = [
        {"task_id": "mini/19", "solution": right["mini/19"]},
        {"task_id": "mini/19", "solution": "I do not know."},
        {"task_id": "mini/19", "solution": "", "finish_reason": "error", "error": "HTTP 500"},
        {"task_id": "mini/0", "solution": right["mini/0"]},
        {"task_id": "mini/0", "solution": ""},
        {"task_id": "mini/0", "solution": right["mini/0"]},
    ]
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    config = ScoreConfig("mini", tmp_path / "results", samples_file=str(path), partial=True)
    with ProgressDisplay("mini", quiet=True) as display:
        evaluation = score(config, display)
        results = evaluation.results
        assert results.integrity == {"not-run": 3, "separated": 2, "shared": 1}
        assert sum(results.integrity.values()) == results.samples
        verdicts = RunReader(evaluation.path.with_suffix("")).verdicts
        assert verdicts["mini/19", 1].integrity == verdicts["mini/19", 2].integrity == "not-run"
        show(evaluation, as_json=False)
        assert "shared-tests: 1 of 3 verdicts could be forged" in capsys.readouterr().out
        # A run of an earlier version, which said "shared" of these.
        lines_of = evaluation.path.with_suffix("") / "verdicts.jsonl"
        lines_of.write_text(lines_of.read_text().replace('"not-run"', '"shared"'))
        again = score(replace(config), display)
    assert again.run == evaluation.run
    assert again.results.integrity == results.integrity
