"""History, comparison and the per-problem TSV."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from assay.errors import RunError
from assay.runs import Result, compare, find_result, list_runs, open_run, read_tsv, render_result
from assay.runs.results import parse_result
from assay.scoring import Tally
from tests.runs.consistent import make_consistent
from tests.runs.test_folder import MODEL
from tests.test_protocol import BASE

RESULT: dict[str, Any] = {
    "schema": 1,
    "benchmark": "mini",
    "model": "m",
    "timestamp": "2026-01-01T00:00:00",
    "results": {"pass_at_1": 0.5, "invalid": 0},
    "problems": [
        {"task_id": "a", "n": 1, "passed": 1},
        {"task_id": "b", "n": 1, "passed": 0},
        {"task_id": "c", "n": 0, "passed": 0},
    ],
    "protocol": BASE.to_json(),
    "run": "mini_20260101_000000",
}
RESULT = make_consistent(RESULT)


def typed(content: dict[str, Any]) -> Result:
    return parse_result(content, Path("r.json"))


def test_flips_are_found_and_unjudged_problems_left_out() -> None:
    other = copy.deepcopy(RESULT)
    other["problems"] = [
        {"task_id": "a", "n": 1, "passed": 0},
        {"task_id": "b", "n": 1, "passed": 1},
        {"task_id": "c", "n": 1, "passed": 1},
    ]
    other["results"]["pass_at_1"] = 2 / 3
    found = compare(typed(RESULT), typed(other))
    assert (found.gained, found.lost) == (("b",), ("a",))
    assert (found.problems, found.difference) == (2, 0.0)  # c was not judged in both
    assert found.protocol_differences == ()


def test_differing_protocols_are_named() -> None:
    other = copy.deepcopy(RESULT)
    other["protocol"]["decoding"]["temperature"] = 0.8
    found = compare(typed(RESULT), typed(other))
    assert found.protocol_differences == (("decoding.temperature", 0.0, 0.8),)


def test_history_is_newest_first_and_shows_unfinished_runs(tmp_path: Path) -> None:
    for day in (1, 3, 2):
        result = {**RESULT, "timestamp": f"2026-01-0{day}", "run": f"mini_2026010{day}_000000"}
        (tmp_path / f"mini_2026010{day}_000000.json").write_text(json.dumps(result))
    (tmp_path / "throughput.json").write_text("{}")
    open_run(tmp_path, BASE, MODEL).close()
    listed = list_runs(tmp_path)
    assert [run.timestamp[:10] for run in listed[1:]] == [
        "2026-01-03",
        "2026-01-02",
        "2026-01-01",
    ]
    assert listed[0].result is None
    assert list_runs(tmp_path / "none") == []


def test_a_result_is_found_by_file_folder_or_name(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps(RESULT))
    for reference in (tmp_path / "r.json", tmp_path / "r", "r"):
        assert render_result(find_result(str(reference), tmp_path)) == RESULT
    with pytest.raises(RunError, match="x: no such result"):
        find_result("x", tmp_path)


def test_a_result_of_another_schema_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({**RESULT, "schema": 99}))
    with pytest.raises(RunError, match="schema 99"):
        find_result("r", tmp_path)


@pytest.mark.parametrize(
    "changed", [{"results": {}}, {"problems": [{"n": 1}]}, {"protocol": {}}, {"problems": [3]}]
)
def test_a_result_with_holes_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    (tmp_path / "r.json").write_text(json.dumps({**RESULT, **changed}))
    with pytest.raises(RunError, match="not a results file"):
        find_result("r", tmp_path)


@pytest.mark.parametrize(
    "changed",
    [
        {"left_out_as_failed": None},
        {"left_out_as_failed": "x"},
        {"left_out_as_failed": {"pass_at_1": "x"}},
        {"left_out_as_failed": {"intervals": []}},
        {"pass_at_1": 1e300},
        {"pass_at_1": -0.5},
    ],
)
def test_scores_that_cannot_be_shown_are_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    """With such a score, ``history`` would end in a traceback or show 300 digits."""
    results = {**RESULT["results"], **changed}
    (tmp_path / "r.json").write_text(json.dumps({**RESULT, "results": results}))
    with pytest.raises(RunError, match="not a results file"):
        find_result("r", tmp_path)


COVERAGE = {
    "benchmark_problems": 3, "selected_problems": 3, "judged_problems": 2, "samples": 3,
    "judged_samples": 2, "complete": False,
}  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        {"coverage": {}},
        {"coverage": 5},
        {"coverage": [1]},
        {"coverage": {"complete": False}},
        {"coverage": {**COVERAGE, "judged_problems": "two"}},
        {"coverage": {**COVERAGE, "complete": "no"}},
        {"config": [1]},
        {"config": "x"},
    ],
)
def test_coverage_that_cannot_be_shown_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    """Unchecked, these end in a traceback, and an empty coverage counts as complete."""
    (tmp_path / "r.json").write_text(json.dumps({**RESULT, "coverage": COVERAGE}))
    assert render_result(find_result("r", tmp_path))["coverage"] == COVERAGE
    (tmp_path / "r.json").write_text(json.dumps({**RESULT, **changed}))
    with pytest.raises(RunError, match="not a results file"):
        find_result("r", tmp_path)


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run.json").write_text("{}")
    assert list_runs(tmp_path) == []
    open_run(tmp_path, BASE, MODEL).close()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}"])
def test_what_is_no_results_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(RunError, match=r"r\.json"):
        find_result("r", tmp_path)


@pytest.mark.parametrize("header", ["", "task_id\tn\tnum_passed\n"])
def test_tsv_with_and_without_header(tmp_path: Path, header: str) -> None:
    path = tmp_path / "t.tsv"
    path.write_text(f"{header}a\t10\t3\nb\t10\t0\n")
    assert read_tsv(path) == [Tally("a", 10, 3), Tally("b", 10, 0)]


@pytest.mark.parametrize("content", ["a\t1\n", "a\tx\t1\n", "a\t-1\t1\n", "\n", "\xff"])
def test_a_bad_tsv_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "t.tsv"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(RunError, match=r"t\.tsv"):
        read_tsv(path)
