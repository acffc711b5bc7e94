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
from assay.pipeline.cross_check import disagreements, peer_score
from assay.types import Benchmark, SampleKey
from tests.conftest import references, write_completions
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
    config = ScoreConfig("mini", tmp_path / "results", samples_file=str(path), partial=True)
    with ProgressDisplay("mini", quiet=False) as display:
        peer = peer_score(config, "generous", display)
        assert handed_over.keys() == peer.verdicts.keys() == {(first.task_id, 0)}
        assert [e.value for e in peer.estimates] == [1.0]
        assert peer.not_generated == 1
        assert (peer.coverage.judged_problems, peer.coverage.selected_problems) == (1, 20)
        assert disagreements(config, score(config, display), peer, display) == []
    assert "generous judges 1 programs; 1 samples have an error" in capsys.readouterr().err


@pytest.mark.usefixtures("handed_over")
def test_another_judges_score_over_fewer_problems_is_incomplete(
    mini: Benchmark, tmp_path: Path
) -> None:
    """It had no heading, and exit code 0."""
    path = write_completions(tmp_path / "half.jsonl", references(mini)[:8])
    asked = ("score", path, "--benchmark", "mini", "--engine", "generous", "--partial")
    done = run_command(*asked, folder=tmp_path)
    assert done.code == 3
    assert done.out.startswith("incomplete: 8 of 20 problems judged")
    counted = json.loads(run_command(*asked, "--json", folder=tmp_path).out)["coverage"]
    assert (counted["judged_problems"], counted["complete"]) == (8, False)
    whole = run_command(*asked, "--problems", "8", folder=tmp_path)
    assert (whole.code, whole.out.startswith("mini[:8] · judged by generous")) == (0, True)


def test_a_split_is_not_judged_by_the_tests_of_the_whole(
    humaneval: Benchmark, shared_data: Path, tmp_path: Path
) -> None:
    if not (shared_data / HUMANEVALPLUS_MINI.path).exists():
        pytest.skip(f"{shared_data} has no {HUMANEVALPLUS_MINI.path}")
    path = write_completions(tmp_path / "s.jsonl", references(humaneval)[:1])
    asked = ("--benchmark", "humanevalplus", "--split", "mini", "--problems", "1")
    done = run_command("score", path, *asked, "--engine", "evalplus", folder=tmp_path)
    assert done.code == 2
    assert "EvalPlus does not have humanevalplus-mini" in done.err


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
    config = ScoreConfig("mini", tmp_path / "results", samples_file=str(path))
    with ProgressDisplay("mini", quiet=True) as display:
        peer = peer_score(config, "strict", display)
        (one,) = disagreements(config, score(config, display), peer, display)
    assert one.task_id == "mini/0"
    assert "needs its demonstration" in one.explained
