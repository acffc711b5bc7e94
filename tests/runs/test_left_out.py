"""Samples that are left out of a score are shown beside it, whatever shows the score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.compare import compare
from assay.cli.eval import show
from assay.cli.history import history
from assay.runs import Environment, Result, build_result, open_run, write_result
from assay.scoring import as_failed, coverage, estimate, estimates, tally
from assay.types import Completion, Integrity, Status, Verdict
from tests.runs.consistent import fit_protocol, rehash
from tests.runs.test_folder import MODEL
from tests.test_protocol import BASE

LEFT_OUT = "20.0 % with the 8 left-out samples counted as failed"


def evaluation(folder: Path, statuses: list[Status], integrity: Integrity = "separated") -> Result:
    """A run with one sample a problem."""
    protocol = fit_protocol(BASE, [f"t/{number}" for number in range(len(statuses))])
    run = open_run(folder, protocol, MODEL, fresh=True)
    run.add_environment(Environment())
    for number, status in enumerate(statuses):
        reason = {"pass": "passed", "fail": "exit", "invalid": "sandbox-error"}[status]
        run.add_completion(Completion(f"t/{number}", 0, "x", "stop", 0, 0, 0.0, 0, False))
        run.add_verdict(Verdict(f"t/{number}", 0, status, reason, integrity=integrity))
    tallies = tally([v.task_id for v in run.verdicts.values()], run.verdicts.values())
    result = build_result(
        run, protocol, tallies, coverage(tallies, 1, len(tallies)), estimates(tallies)
    )
    write_result(result)
    run.close()
    return result


@pytest.fixture
def two_of_ten(tmp_path: Path) -> Result:
    statuses: list[Status] = ["pass" if n < 2 else "invalid" for n in range(10)]
    return evaluation(tmp_path, statuses)


def summary(found: Result, capsys: pytest.CaptureFixture[str]) -> str:
    show(found, as_json=False)
    return capsys.readouterr().out


def test_two_right_and_eight_invalid_are_not_100_percent(
    two_of_ten: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both the summary and the file say what the score is if those count as failed."""
    assert two_of_ten.pass_at[1].value == 1.0
    found = two_of_ten.results.left_out_as_failed
    assert found is not None
    assert (found.samples, found.pass_at[1].value, found.pass_at[1].problems) == (8, 0.2, 10)
    written = json.loads(two_of_ten.path.read_text())["results"]["left_out_as_failed"]
    assert (written["samples"], written["pass_at_1"]) == (8, 0.2)
    assert written["intervals"]["pass_at_1"]["problems"] == 10
    (line,) = (x for x in summary(two_of_ten, capsys).splitlines() if "pass@1" in x)
    assert "100.0 %" in line
    assert line.endswith(f"2 problems; {LEFT_OUT}")


def test_nothing_is_said_where_nothing_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = evaluation(tmp_path, ["pass", "fail"])
    assert found.results.left_out_as_failed is None
    assert "left-out" not in summary(found, capsys)


def test_history_and_compare_mark_the_score(two_of_ten: Result) -> None:
    folder = two_of_ten.path.parent
    other = evaluation(folder, ["pass", "pass"])
    asked = ["--results-dir", str(folder)]
    listed = CliRunner().invoke(history, asked).output.splitlines()
    assert [line for line in listed if "100.0 % (20.0 %)" in line]
    assert any("count as failed" in line for line in listed)
    assert "!partial !invalid no-gpu" in listed[2]
    assert [line.partition(":")[0] for line in listed[-3:]] == ["!partial", "!invalid", "no-gpu"]
    shown = CliRunner().invoke(compare, [str(two_of_ten.path), str(other.path), "--force", *asked])
    first, second, *_ = shown.stdout.splitlines()
    assert LEFT_OUT in first
    assert "left-out" not in second


def test_results_of_earlier_versions_are_readable(two_of_ten: Result) -> None:
    result: dict[str, Any] = json.loads(two_of_ten.path.read_text())
    del result["results"]["left_out_as_failed"]
    result["protocol"] = rehash(result["protocol"] | {"version": 2})
    (two_of_ten.folder / "protocol.json").write_text(json.dumps(result["protocol"]))
    two_of_ten.path.write_text(json.dumps(result))
    asked = ["--results-dir", str(two_of_ten.path.parent)]
    assert "100.0 %" in CliRunner().invoke(history, asked).output
    shown = CliRunner().invoke(compare, [str(two_of_ten.path), str(two_of_ten.path), *asked])
    assert "; 8 left-out samples" in shown.output


@pytest.mark.parametrize(("integrity", "is_said"), [("shared", True), ("separated", False)])
def test_the_summary_says_when_verdicts_are_shared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], integrity: Integrity, is_said: bool
) -> None:
    """The results file alone is not enough."""
    said = summary(evaluation(tmp_path, ["pass", "fail", "invalid"], integrity), capsys)
    line = "  marked    shared-tests: 2 of 2 verdicts could be forged by a program"
    assert (line in said.splitlines()) is is_said


@given(st.lists(st.sampled_from(["pass", "fail", "invalid"]), min_size=1, max_size=30))
def test_as_failures_they_never_raise_the_score(statuses: list[Status]) -> None:
    verdicts = [Verdict("t", n, status, "") for n, status in enumerate(statuses)]
    lower = estimate(tally(["t"], as_failed(verdicts)), 1)
    higher = estimate(tally(["t"], verdicts), 1)
    assert lower is not None
    assert lower.value == pytest.approx(statuses.count("pass") / len(statuses))
    assert higher is None or lower.value <= higher.value + 1e-9
