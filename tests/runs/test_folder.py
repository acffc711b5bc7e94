"""Run folders: resume, damage, locks."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from assay.errors import RunError
from assay.runs import RunReader, RunWriter, open_run
from assay.types import Completion, ModelIdentity, Verdict
from tests.test_protocol import BASE

MODEL = ModelIdentity("m", "replay", "w", "chat")


def completion(task_id: str = "a", error: str | None = None) -> Completion:
    return Completion(task_id, 0, "text", "stop", 1, 1, 1.0, 0, False, error=error)


def reopened(run: RunWriter) -> RunWriter:
    run.close()
    return RunWriter(run.path)


def test_the_same_run_is_found_again_and_another_is_not(tmp_path: Path) -> None:
    first = open_run(tmp_path, BASE, MODEL)
    first.close()
    again = open_run(tmp_path, BASE, MODEL)
    again.close()
    assert again.path == first.path
    hotter = dataclasses.replace(BASE, n_samples=2)
    others = [
        open_run(tmp_path, hotter, MODEL),
        open_run(tmp_path, BASE, dataclasses.replace(MODEL, weights_sha256="v")),
        open_run(tmp_path, BASE, MODEL, fresh=True),
    ]
    assert len({run.path for run in [first, *others]}) == 4


def test_a_resumed_run_says_where_its_model_is_now(tmp_path: Path) -> None:
    """The path and the name change if the file was moved."""
    before = dataclasses.replace(MODEL, name="old/model", path="/old/model.gguf")
    after = dataclasses.replace(MODEL, name="new/model", path="/new/model.gguf")
    notes: list[str] = []
    first = open_run(tmp_path, BASE, before)
    first.close()
    for _ in range(2):
        again = open_run(tmp_path, BASE, after, warn=notes.append)
        again.close()
        assert again.path == first.path
        assert RunReader(first.path).about.model == after
    assert notes == ["the model of this run has moved; it was at /old/model.gguf"]
    open_run(tmp_path, BASE, MODEL, warn=notes.append).close()  # a server's model has no path
    assert RunReader(first.path).about.model == after
    assert len(notes) == 1


def test_fresh_runs_are_the_ones_resumed_later(tmp_path: Path) -> None:
    open_run(tmp_path, BASE, MODEL).close()
    fresh = open_run(tmp_path, BASE, MODEL, fresh=True)
    fresh.close()
    assert open_run(tmp_path, BASE, MODEL).path == fresh.path


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    run = open_run(tmp_path, BASE, MODEL)
    run.add_completion(completion())
    run.add_verdict(Verdict("a", 0, "pass", "passed"))
    run = reopened(run)
    assert run.completions == {("a", 0): dataclasses.replace(completion(), text="")}
    assert run.judged == {("a", 0)}


def test_what_was_not_judged_still_has_its_text(tmp_path: Path) -> None:
    run = open_run(tmp_path, BASE, MODEL)
    run.add_completion(completion())
    assert reopened(run).completions == {("a", 0): completion()}


def test_errors_and_invalid_verdicts_are_tried_again(tmp_path: Path) -> None:
    run = open_run(tmp_path, BASE, MODEL)
    run.add_completion(completion(error="server busy"))
    run.add_verdict(Verdict("a", 0, "invalid", "generation-error"))
    run = reopened(run)
    assert run.completions == {}
    assert run.judged == set()
    run.add_completion(completion())
    run.add_verdict(Verdict("a", 0, "pass", "passed"))
    run = reopened(run)
    assert list(run.completions) == [("a", 0)]
    assert run.judged == {("a", 0)}


@pytest.mark.parametrize("name", ["completions.jsonl", "verdicts.jsonl"])
def test_a_half_written_last_line_is_what_a_kill_leaves(tmp_path: Path, name: str) -> None:
    run = open_run(tmp_path, BASE, MODEL)
    run.add_completion(completion())
    run.add_completion(completion("b"))
    run.add_verdict(Verdict("a", 0, "pass", "passed"))
    run.add_verdict(Verdict("b", 0, "pass", "passed"))
    path = run.path / name
    whole = path.read_bytes()
    first_line = whole.index(b"\n") + 1
    for cut in range(first_line, len(whole)):
        path.write_bytes(whole[:cut])
        run = reopened(run)
        assert path.read_bytes() == whole[:first_line]
        kept = run.completions if name == "completions.jsonl" else run.verdicts
        assert list(kept) == [("a", 0)]


@pytest.mark.parametrize("damage", [b"garbage\n", b'{"task_id": "a"}\n', b"\xff\xfe\n", b"\n"])
def test_a_damaged_line_is_named_and_nothing_is_lost(tmp_path: Path, damage: bytes) -> None:
    run = open_run(tmp_path, BASE, MODEL)
    run.add_completion(completion())
    run.close()
    path = run.path / "completions.jsonl"
    before = damage + path.read_bytes()
    path.write_bytes(before)
    with pytest.raises(RunError, match=r"completions\.jsonl line 1: damaged .*Delete the line"):
        open_run(tmp_path, BASE, MODEL)
    assert path.read_bytes() == before


def test_two_processes_do_not_share_a_run(tmp_path: Path) -> None:
    run = open_run(tmp_path, BASE, MODEL)
    with pytest.raises(RunError, match="another process is using this run"):
        open_run(tmp_path, BASE, MODEL)
    run.close()
    open_run(tmp_path, BASE, MODEL).close()
