"""``assay score``, the verdict cache and the flake check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.types import Benchmark
from tests.conftest import Cli, broken, references, write_completions

CACHED = {"ASSAY_NO_CACHE": ""}


def scored(
    assay: Cli, *arguments: str | Path, env: dict[str, str] | None = None, code: int = 0
) -> dict[str, Any]:
    done = assay("score", *arguments, "--json", env=env)
    assert done.returncode == code, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_whole_programs_and_continuations(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    whole = write_completions(tmp_path / "whole.jsonl", references(mini))
    bodies = [(p.task_id, p.reference.removeprefix(p.prompt)) for p in mini.problems]
    rest = write_completions(tmp_path / "rest.jsonl", bodies, field="completion")
    for samples in (whole, rest):
        result = scored(assay, samples, "--benchmark", "mini")
        assert result["results"]["pass_at_1"] == 1.0
        assert result["config"]["prompt_strategy"] == "recorded"


def test_uneven_files_are_scored_as_they_are(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    texts = [*references(mini)[:5], *broken(mini)[:2], *references(mini)[:1]]
    samples = write_completions(tmp_path / "s.jsonl", texts)
    asked = ("--benchmark", "mini", "--problems", "5", "--partial")
    result = scored(assay, samples, *asked, code=3)
    assert [(p["n"], p["passed"]) for p in result["problems"]] == [
        (3, 2), (2, 1), (1, 1), (1, 1), (1, 1),
    ]  # fmt: skip
    assert result["results"]["invalid"] == 0
    assert result["results"]["samples"] == 8


def test_a_runs_own_completions_score_the_same(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    model = write_completions(tmp_path / "m.jsonl", [*references(mini)[:9], *broken(mini)[9:]])
    made = json.loads(assay("eval", "mini", "--model", model, "--json").stdout)
    again = scored(assay, f"results/{made['run']}/completions.jsonl", "--benchmark", "mini")
    assert again["problems"] == made["problems"]


def test_a_task_of_another_benchmark_is_named(assay: Cli, tmp_path: Path) -> None:
    samples = write_completions(tmp_path / "s.jsonl", [("HumanEval/0", "x = 1")])
    done = assay("score", samples, "--benchmark", "mini")
    assert done.returncode == 2
    assert "HumanEval/0, which is not a task of mini" in done.stderr


@pytest.fixture
def tracer(mini: Benchmark, tmp_path: Path) -> Path:
    """Programs whose verdict is a coin's: only a cache makes them agree."""
    coin = "import os\nif os.urandom(1)[0] % 2: raise ValueError\n"
    texts = [(task_id, coin + code) for task_id, code in references(mini)]
    return write_completions(tmp_path / "coins.jsonl", texts * 2)


@pytest.mark.slow
def test_what_was_executed_once_is_not_executed_again(
    assay: Cli, tracer: Path, tmp_path: Path
) -> None:
    env = {**CACHED, "ASSAY_CACHE_DIR": str(tmp_path / "cache")}
    ask = (tracer, "--benchmark", "mini", "--fresh")
    first = scored(assay, *ask, env=env)
    assert all(p["passed"] in (0, 2) for p in first["problems"])  # identical samples, one verdict
    assert {p["passed"] for p in first["problems"]} == {0, 2}
    assert scored(assay, *ask, env=env)["problems"] == first["problems"]
    different = [scored(assay, *ask, "--no-cache", env=env)["problems"] for _ in range(2)]
    assert first["problems"] not in different or different[0] != different[1]


@pytest.mark.slow
def test_a_damaged_cache_is_not_believed(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    env = {**CACHED, "ASSAY_CACHE_DIR": str(tmp_path / "cache")}
    samples = write_completions(tmp_path / "s.jsonl", references(mini))
    scored(assay, samples, "--benchmark", "mini", env=env)
    stored = list((tmp_path / "cache" / "verdicts").rglob("*.json"))
    assert len(stored) == 20
    for number, path in enumerate(stored):
        text = path.read_text()
        path.write_text(text.replace('"pass"', '"fail"') if number % 2 else text[:-9])
    again = scored(assay, samples, "--benchmark", "mini", "--fresh", env=env)
    assert again["results"]["pass_at_1"] == 1.0


@pytest.mark.slow
def test_flaky_samples_are_found_and_steady_ones_are_not(
    assay: Cli, mini: Benchmark, tracer: Path, tmp_path: Path
) -> None:
    steady = write_completions(tmp_path / "s.jsonl", [*references(mini), *broken(mini)])
    assert scored(assay, steady, "--benchmark", "mini", "--check-flaky", "2")["flaky"] == {}
    found = scored(assay, tracer, "--benchmark", "mini", "--check-flaky", "3")["flaky"]
    assert len(found) > 20
    assert all(len(statuses) == 4 for statuses in found.values())
