"""Who is asked for a second judgement, with a judge of the test's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from assay.cli._progress import ProgressDisplay
from assay.datasets.pinned import HUMANEVALPLUS_MINI
from assay.peers import PeerVerdict, peers
from assay.pipeline import ScoreConfig, score
from assay.pipeline.cross_check import disagreements, peer_score, write_peer_score
from assay.runs import read_result, render_result
from assay.types import Benchmark, SampleKey
from tests.conftest import broken, references, write_completions
from tests.in_process import run_command


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch) -> dict[SampleKey, str]:
    """To a judge that passes everything."""
    found: dict[SampleKey, str] = {}

    def judge(
        _benchmark: str, programs: Mapping[SampleKey, str], _workers: int, _data_dir: Path | None
    ) -> dict[SampleKey, PeerVerdict]:
        found.update(programs)
        return {key: PeerVerdict(True) for key in programs}

    peers.names()
    monkeypatch.setitem(peers._items, "generous", judge)
    return found


def test_what_was_not_generated_is_not_judged(
    handed_over: dict[SampleKey, str],
    mini: Benchmark,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It would be an empty program, which fails: an error of ours, not of the model."""
    first, second, *_ = mini.problems
    lines = [
        {"task_id": first.task_id, "solution": first.reference},
        {"task_id": second.task_id, "solution": "", "finish_reason": "error", "error": "HTTP 500"},
    ]
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    config = ScoreConfig(
        "mini", tmp_path / "results", samples_file=str(path), partial=True, workers=1
    )
    with ProgressDisplay("mini", quiet=False) as display:
        peer = peer_score(config, "generous", display)
        assert handed_over.keys() == peer.verdicts.keys() == {(first.task_id, 0)}
        assert peer.errors == {(second.task_id, 0): "HTTP 500"}
        result = write_peer_score(config, peer, display)
        assert (result.pass_at[1].value, result.results.errors) == (1.0, 1)
        assert result.coverage is not None
        assert (result.coverage.judged_problems, result.coverage.selected_problems) == (1, 20)
        assert disagreements(config, score(config, display), peer, display) == []
    assert "generous judges 1 program; 1 sample without a program" in capsys.readouterr().err


@pytest.mark.usefixtures("handed_over")
def test_another_judges_score_over_fewer_problems_is_incomplete(
    mini: Benchmark, tmp_path: Path
) -> None:
    """It has the heading and the exit code of an incomplete score."""
    path = write_completions(tmp_path / "half.jsonl", references(mini)[:8])
    asked = ("score", path, "--benchmark", "mini", "--engine", "generous", "--partial")
    done = run_command(*asked, folder=tmp_path)
    assert done.code == 3
    assert done.out.startswith("incomplete: 8 of 20 problems judged")
    counted = json.loads(run_command(*asked, "--json", folder=tmp_path).out)["coverage"]
    assert (counted["judged_problems"], counted["complete"]) == (8, False)
    whole = run_command(*asked, "--problems", "8", folder=tmp_path)
    heading = "mini[:8] · half · recorded elsewhere · n=1 · judged by generous"
    assert (whole.code, whole.out.splitlines()[0]) == (0, heading)


@pytest.mark.usefixtures("handed_over")
def test_what_was_checked_besides_is_kept_in_the_results_file(
    mini: Benchmark, tmp_path: Path
) -> None:
    path = write_completions(tmp_path / "s.jsonl", broken(mini)[:2])
    asked = ("score", path, "--benchmark", "mini", "--problems", "2", "--json")
    checks = ("--check-flaky", "1", "--compare-extraction", "--engine", "generous", "--cross-check")
    printed = json.loads(run_command(*asked, *checks, folder=tmp_path).out)
    assert printed["flaky"] == {}
    assert [one["task_id"] for one in printed["cross_check"]["disagreements"]] == [
        "mini/0", "mini/1",
    ]  # fmt: skip
    assert "extraction" in printed
    results = tmp_path / "results"
    assert render_result(read_result(results / f"{printed['run']}.json")) == printed
    again = json.loads(run_command(*asked, folder=tmp_path).out)
    assert again == printed  # the run is resumed, nothing of it is lost
    for command in (
        ("history",), ("compare", printed["run"], printed["run"]),
        ("export", printed["run"], "--format", "evalplus", "--output", "out.jsonl"),
    ):  # fmt: skip
        done = run_command(*command, folder=tmp_path)
        assert (done.code, done.err) == (0, "")


@pytest.mark.usefixtures("handed_over")
def test_a_score_by_another_judge_is_kept_and_not_taken_for_ours(
    mini: Benchmark, tmp_path: Path
) -> None:
    path = write_completions(tmp_path / "s.jsonl", [*references(mini)[:9], *broken(mini)[9:]])
    asked = ("score", path, "--benchmark", "mini", "--json")
    ours = json.loads(run_command(*asked, folder=tmp_path).out)
    done = run_command(*asked, "--engine", "generous", folder=tmp_path)
    theirs = json.loads(done.out)
    found = read_result(tmp_path / "results" / f"{theirs['run']}.json")
    assert render_result(found) == theirs
    assert theirs["results"]["pass_at_1"] == 1.0
    assert theirs["protocol"]["judge"] == "generous"
    assert "judge" not in ours["protocol"]
    assert "the programs were judged by generous" in theirs["not_publishable"]
    listed = run_command("history", folder=tmp_path).out.splitlines()
    assert ["generous" in line for line in listed[:3]] == [False, True, False]
    for more in ((), ("--force",)):
        done = run_command("compare", ours["run"], theirs["run"], *more, folder=tmp_path)
        assert done.code == 2
        assert "assay score --cross-check" in done.err
    assert json.loads(run_command(*asked, folder=tmp_path).out) == ours
    again = json.loads(run_command(*asked, "--engine", "generous", folder=tmp_path).out)
    assert again["run"] != theirs["run"]  # it is asked again
    done = run_command("compare", theirs["run"], again["run"], folder=tmp_path)
    assert (done.code, done.err) == (0, "")


def test_a_split_is_not_judged_by_the_tests_of_the_whole(
    humaneval: Benchmark, shared_data: Path, tmp_path: Path
) -> None:
    if not (shared_data / HUMANEVALPLUS_MINI.path).exists():
        pytest.skip(f"{shared_data} has no {HUMANEVALPLUS_MINI.path}")
    path = write_completions(tmp_path / "s.jsonl", references(humaneval)[:1])
    asked = ("--benchmark", "humanevalplus", "--split", "mini", "--problems", "1")
    done = run_command("score", path, *asked, "--engine", "evalplus", folder=tmp_path)
    assert done.code == 2
    assert "EvalPlus: does not have humanevalplus-mini" in done.err


def test_a_program_that_needs_its_demonstration_is_explained(
    mini: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other judge gets the program that is tried first."""

    def judge(
        _benchmark: str, programs: Mapping[SampleKey, str], _workers: int, _data_dir: Path | None
    ) -> dict[SampleKey, PeerVerdict]:
        return {key: PeerVerdict("RATIO" not in code) for key, code in programs.items()}

    peers.names()
    monkeypatch.setitem(peers._items, "strict", judge)
    code = "RATIO = []\ndef celsius_to_fahrenheit(c):\n    return c * RATIO[0] + 32\n"
    answers = dict(references(mini)) | {"mini/0": f"{code}RATIO.append(9 / 5)\n"}
    path = write_completions(tmp_path / "s.jsonl", answers.items())
    config = ScoreConfig("mini", tmp_path / "results", samples_file=str(path), workers=1)
    with ProgressDisplay("mini", quiet=True) as display:
        peer = peer_score(config, "strict", display)
        (one,) = disagreements(config, score(config, display), peer, display)
    assert one.task_id == "mini/0"
    assert "needs its demonstration" in one.explained
