"""Bad samples files: one clear line, or a verdict; never a lost run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.types import Benchmark
from tests.conftest import Cli, references, write_completions

BENCHMARK = ("--benchmark", "mini")


def refused(assay: Cli, samples: Path, complaint: str) -> None:
    done = assay("score", samples, *BENCHMARK, "--partial")
    assert done.returncode == 2
    assert done.stdout == ""
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def verdicts(assay: Cli, samples: Path, tmp_path: Path) -> list[dict[str, Any]]:
    asked = (*BENCHMARK, "--partial", "--json", "--results-dir", tmp_path / "results")
    done = assay("score", samples, *asked)
    assert done.returncode in (0, 3), done.stderr
    run = tmp_path / "results" / json.loads(done.stdout)["run"]
    return [json.loads(line) for line in (run / "verdicts.jsonl").read_text().splitlines()]


def test_an_unknown_task(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    texts = [*references(mini), ("HumanEval/0", "def f(): pass")]
    samples = write_completions(tmp_path / "s.jsonl", texts)
    refused(assay, samples, "HumanEval/0, which is not a task of mini. Give the right --benchmark")


def test_missing_tasks_are_told_and_left_out(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    samples = write_completions(tmp_path / "s.jsonl", references(mini)[:3])
    done = assay("score", samples, *BENCHMARK, "--partial")
    assert done.returncode == 3
    assert "has samples of 3 of 20 problems of mini" in done.stderr


def test_the_same_sample_twice(assay: Cli, tmp_path: Path) -> None:
    line = json.dumps({"task_id": "mini/0", "sample": 0, "text": "x = 1"})
    samples = tmp_path / "s.jsonl"
    samples.write_text(f"{line}\n{line}\n")
    refused(assay, samples, "line 2: sample 0 of mini/0 occurs twice. Remove one")


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_another_encoding(assay: Cli, tmp_path: Path, encoding: str) -> None:
    samples = tmp_path / "s.jsonl"
    samples.write_text('{"task_id": "mini/0", "solution": "# é"}\n', encoding=encoding)
    refused(assay, samples, "is not UTF-8")


def test_a_byte_order_mark_is_nothing(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    samples = write_completions(tmp_path / "s.jsonl", references(mini)[:1])
    samples.write_text(samples.read_text(), encoding="utf-8-sig")
    assert [v["status"] for v in verdicts(assay, samples, tmp_path)] == ["pass"]


def test_bad_completions_fail_and_the_rest_is_judged(
    assay: Cli, mini: Benchmark, tmp_path: Path
) -> None:
    name = mini.problems[0].tests.entry_point
    odd = [
        ("too-long", "x = 1\n" * (50 * 2**20 // 6)),
        ("syntax", f"def {name}(x):\n    return '\0'\n"),
        ("syntax", f"def {name}(x):\n    return '\ud800'\n"),
        ("no-code", ""),
    ]
    texts = [("mini/0", text) for _, text in odd]
    samples = write_completions(tmp_path / "s.jsonl", [*texts, *references(mini)[1:3]])
    found = verdicts(assay, samples, tmp_path)
    by_sample = {v["sample"]: v for v in found if v["task_id"] == "mini/0"}
    assert [by_sample[i]["reason"] for i in range(len(odd))] == [reason for reason, _ in odd]
    assert {by_sample[i]["status"] for i in range(len(odd))} == {"fail"}
    # What never ran has no integrity: it counts neither as forgeable nor as separated.
    assert [by_sample[i]["integrity"] for i in range(len(odd))] == [
        "not-run", "separated", "separated", "not-run",
    ]  # fmt: skip
    assert [v["status"] for v in found if v["task_id"] != "mini/0"] == ["pass", "pass"]
