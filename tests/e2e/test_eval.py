"""``assay eval`` as a user runs it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from assay.types import Benchmark
from tests.conftest import ASSAY, Cli, broken, references, write_completions


def evaluated(assay: Cli, *arguments: str | Path, code: int = 0) -> dict[str, Any]:
    done = assay("eval", *arguments, "--json")
    assert done.returncode == code, done.stderr
    assert done.stderr == ""
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_references_score_100_per_problem(real_assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    model = write_completions(tmp_path / "right.jsonl", references(mini))
    result = evaluated(real_assay, "mini", "--model", model, "--workers", "2")
    assert result["results"]["pass_at_1"] == 1.0
    assert [p["passed"] for p in result["problems"]] == [1] * 20


def test_broken_ones_score_0_per_problem(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    model = write_completions(tmp_path / "wrong.jsonl", broken(mini))
    result = evaluated(assay, "mini", "--model", model)
    assert result["results"]["pass_at_1"] == 0.0
    assert [p["passed"] for p in result["problems"]] == [0] * 20


def test_n_samples_give_pass_at_10_and_clustered_intervals(
    assay: Cli, mini: Benchmark, tmp_path: Path
) -> None:
    right, wrong = references(mini)[:5], broken(mini)[:5]
    texts = [pair for _ in range(5) for pair in right] + [pair for _ in range(5) for pair in wrong]
    model = write_completions(tmp_path / "mixed.jsonl", texts)
    asked = ("--samples", "5", "--n-samples", "10", "--temperature", "0.8")
    result = evaluated(assay, "mini", "--model", model, *asked)
    assert result["results"]["pass_at_1"] == pytest.approx(0.5)
    assert result["results"]["pass_at_10"] == 1.0
    tsv = (tmp_path / "results" / f"{result['run']}.tsv").read_text()
    assert tsv.splitlines()[0] == "task_id\tn\tnum_passed"
    assert tsv.splitlines()[1] == "mini/0\t10\t5"
    again = assay("passk", "--tsv", f"results/{result['run']}.tsv", "--json")
    assert json.loads(again.stdout)["pass_at_1"]["value"] == pytest.approx(0.5)
    assert json.loads(again.stdout)["pass_at_1"]["low"] == pytest.approx(
        result["results"]["intervals"]["pass_at_1"]["low"]
    )


def test_the_run_folder_holds_every_step(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    model = write_completions(tmp_path / "right.jsonl", references(mini))
    result = evaluated(assay, "mini", "--model", model, "--samples", "3")
    folder = tmp_path / "results" / result["run"]
    assert json.loads((folder / "protocol.json").read_text()) == result["protocol"]
    assert len((folder / "completions.jsonl").read_text().splitlines()) == 3
    assert len((folder / "verdicts.jsonl").read_text().splitlines()) == 3
    saved = json.loads((tmp_path / "results" / f"{result['run']}.json").read_text())
    assert saved == result


def test_a_missing_sample_is_invalid_beside_the_score_and_tried_again(
    assay: Cli, mini: Benchmark, tmp_path: Path
) -> None:
    model = write_completions(tmp_path / "some.jsonl", references(mini)[:15])
    result = evaluated(assay, "mini", "--model", model, code=3)
    counts = result["results"]
    assert (counts["total"], counts["completed"], counts["invalid"], counts["errors"]) == (
        20,
        15,
        5,
        5,
    )
    assert counts["pass_at_1"] == 1.0
    assert counts["intervals"]["pass_at_1"]["problems"] == 15
    assert evaluated(assay, "mini", "--model", model, code=3)["results"] == counts
    lines = (tmp_path / "results" / result["run"] / "completions.jsonl").read_text().splitlines()
    assert len(lines) == 15 + 5 + 5


def test_a_complete_run_is_not_made_twice_unless_fresh(
    assay: Cli, mini: Benchmark, tmp_path: Path
) -> None:
    model = write_completions(tmp_path / "right.jsonl", references(mini))
    first = evaluated(assay, "mini", "--model", model, "--samples", "2")
    assert evaluated(assay, "mini", "--model", model, "--samples", "2") == first
    fresh = evaluated(assay, "mini", "--model", model, "--samples", "2", "--fresh")
    assert fresh["run"] != first["run"]


def test_plain_lines_without_a_terminal(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    model = write_completions(tmp_path / "right.jsonl", references(mini))
    done = assay("eval", "mini", "--model", model)
    assert done.returncode == 0
    assert "mini 20/20  pass@1 100.0 % [83.9, 100.0]  invalid 0" in done.stderr
    assert "\x1b" not in done.stderr + done.stdout
    assert "pass@1    100.0 %  [83.9, 100.0] (95 %), 20 problems" in done.stdout


def test_options_come_from_the_environment_too(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    model = write_completions(tmp_path / "right.jsonl", references(mini))
    settings = {"ASSAY_MODEL": str(model), "ASSAY_SAMPLES": "2", "ASSAY_RESULTS_DIR": "elsewhere"}
    done = assay("eval", "mini", "--json", env=settings)
    assert json.loads(done.stdout)["results"]["total"] == 2
    assert (tmp_path / "elsewhere").is_dir()


def test_history_and_compare(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    wrong = write_completions(tmp_path / "wrong.jsonl", broken(mini))
    right = write_completions(tmp_path / "right.jsonl", references(mini))
    runs = [evaluated(assay, "mini", "--model", m)["run"] for m in (wrong, right)]
    listing = assay("history").stdout.splitlines()
    assert [line.split()[0] for line in listing[1:3]] == runs[::-1]
    assert json.loads(assay("history", "--json").stdout)[0]["run"] == runs[1]
    refused = assay("compare", *runs)
    assert refused.returncode == 2
    assert "protocols differ (origin: " in refused.stderr
    compared = assay("compare", *runs, "--force")
    assert compared.returncode == 0
    assert "B - A  +100.0 points" in compared.stdout
    assert "gained 20 (100.0 %): mini/0, mini/1" in compared.stdout
    found = json.loads(assay("compare", *runs, "--json", "--force").stdout)
    assert (found["difference"], len(found["gained"]), found["lost"]) == (1.0, 20, [])


def test_compare_refuses_different_protocols_and_names_the_fields(
    assay: Cli, mini: Benchmark, tmp_path: Path
) -> None:
    model = write_completions(tmp_path / "right.jsonl", references(mini))
    runs = [
        evaluated(assay, "mini", "--model", model, "--samples", problems)["run"]
        for problems in ("2", "3")
    ]
    refused = assay("compare", *runs)
    assert refused.returncode == 2
    assert "(problems: 2 / 3; problems_sha256: " in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    forced = assay("compare", *runs, "--force")
    assert forced.returncode == 0
    assert "warning: A and B: the protocols differ (problems: 2 / 3;" in forced.stderr


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    shell = " ".join(ASSAY) + " eval --help | true"
    done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True)
    assert "Traceback" not in done.stderr


@pytest.mark.model
@pytest.mark.slow
def test_the_default_model_samples_ten_of_two(assay: Cli) -> None:
    asked = ("--n-samples", "10", "--temperature", "0.8", "--samples", "2", "--max-tokens", "32")
    result = evaluated(assay, "humaneval", *asked)
    assert 0 <= result["results"]["pass_at_1"] <= result["results"]["pass_at_10"] <= 1
    assert result["results"]["samples"] == 20
    assert result["results"]["invalid"] == 0
    assert result["model"] == "SmolLM2-135M-Instruct.Q4_1"


@pytest.mark.model
def test_the_default_model_on_three_problems(assay: Cli, tmp_path: Path) -> None:
    result = evaluated(assay, "mini", "--problems", "3", "--max-tokens", "32", "--threads", "1")
    assert result["model"] == "SmolLM2-135M-Instruct.Q4_1"
    assert (result["results"]["completed"], result["results"]["invalid"]) == (3, 0)
    lines = (tmp_path / "results" / result["run"] / "completions.jsonl").read_text().splitlines()
    assert all(json.loads(line)["tokens_generated"] > 0 for line in lines)
