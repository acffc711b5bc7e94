"""``assay score --engine evalplus``, with EvalPlus itself in an environment of its own."""

from __future__ import annotations

import json
from pathlib import Path

import peers
import pytest
from plus import made

from assay.types import Benchmark
from tests.conftest import Cli, references, write_completions

pytestmark = pytest.mark.slow
# EvalPlus 0.3.1 passes no program for HumanEval/32, not even its own (its pull request 201).
REFUSED = {("HumanEval/32", 1), ("HumanEval/32", 3)}


@pytest.fixture
def mixed(humaneval: Benchmark, tmp_path: Path) -> Path:
    """Five samples a problem, right and wrong in turn: 820."""
    samples = [(task_id, code) for task_id, _, code in made(humaneval, 5)]
    return write_completions(tmp_path / "mixed.jsonl", samples)


def test_both_verdicts_side_by_side(
    assay: Cli, mixed: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shared_data.is_dir()  # EvalPlus's own data
    monkeypatch.setenv(
        "ASSAY_EVALPLUS", str(peers.python("evalplus").with_name("evalplus.evaluate"))
    )
    asked = ("score", mixed, "--benchmark", "humaneval", "--engine", "evalplus", "--json")
    alone = json.loads(assay(*asked).stdout)
    assert alone["engine"] == "evalplus"
    # Its limits are of wall time: a busy machine fails some right programs.
    late = sum(v["timed_out"] for v in alone["verdicts"])
    assert sum(v["passed"] for v in alone["verdicts"]) == 410 - len(REFUSED) - late
    found = json.loads(assay(*asked, "--cross-check").stdout)
    assert found["cross_check"]["samples"] == 820
    differing = found["cross_check"]["disagreements"]
    assert {(d["task_id"], d["sample"]) for d in differing} >= REFUSED
    assert [d for d in differing if not d["explained"]] == []
    assert all("reference" in d["explained"] for d in differing if d["task_id"] == "HumanEval/32")
    assert found["results"]["samples_passed"] == 410


def test_without_it_one_line_says_what_to_do(
    assay: Cli, mini: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = write_completions(tmp_path / "s.jsonl", references(mini))
    done = assay("score", samples, "--benchmark", "mini", "--engine", "evalplus")
    assert done.returncode == 2
    assert "EvalPlus does not have mini" in done.stderr
    done = assay("score", samples, "--benchmark", "mini", "--cross-check")
    assert done.returncode == 2
    assert "--engine evalplus" in done.stderr
    monkeypatch.setenv("ASSAY_EVALPLUS", "/nowhere/evalplus.evaluate")
    done = assay("score", samples, "--benchmark", "mini", "--engine", "nobody")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
