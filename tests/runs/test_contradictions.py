"""A results file that contradicts itself, or its run's verdicts, is refused by every reader."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay import api
from assay.errors import RunError
from assay.runs import find_result, read_result
from tests.in_process import run_command
from tests.report.run_folders import sample, toy_samples, write_run
from tests.runs.test_result import content_of

# What a reader shows as text, or what another version may have: nothing follows from it.
FREE = {"schema", "rest", "timing", "flaky", "extraction", "cross_check", "tests_seed", "cost"}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    write_run(folder, toy_samples((1, 3), n=12, problems=8), model="a", n_samples=12)
    write_run(folder, toy_samples((2,), n=12, problems=8), model="b", n_samples=12)
    return folder


def names(results: Path) -> list[str]:
    return sorted(path.stem for path in results.glob("*.json"))


def edit_result(results: Path, place: list[Any], value: Any) -> None:
    path = results / f"{names(results)[0]}.json"
    content = json.loads(path.read_text())
    inner = content
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    path.write_text(json.dumps(content))


def edit_verdict(results: Path, number: int, **changes: Any) -> None:
    path = results / names(results)[0] / "verdicts.jsonl"
    lines = path.read_text().splitlines()
    lines[number] = json.dumps({**json.loads(lines[number]), **changes})
    path.write_text("\n".join(lines) + "\n")


def test_an_edited_score_is_left_out_of_lists_and_refused_by_name(results: Path) -> None:
    """Unchecked, ``history`` prints 95.0 % [64.0, 77.7], and ``compare`` contradicts itself."""
    edit_result(results, ["results", "pass_at_1"], 0.95)
    first, second = names(results)
    where = ("--results-dir", str(results))
    for command in (["history"], ["leaderboard"], ["report", "--output", "r.html"]):
        done = run_command(*command, *where, folder=results.parent)
        assert done.code == 3, done.err
        assert f"{first}.json: contradicts itself: results.pass_at_1 is 0.95, but" in done.err
        assert "95.0" not in done.out
    for command in (["compare", first, second], ["show", first], ["report", first]):
        done = run_command(*command, *where, folder=results.parent)
        assert (done.code, done.err.count("\n")) == (2, 1), done.err
        assert "results.pass_at_1 is 0.95" in done.err
    with pytest.raises(RunError, match="contradicts itself"):
        api.load_run(first, results)
    assert find_result(second, results).model == "b"


def test_edited_verdicts_are_refused(results: Path) -> None:
    verdicts = results / names(results)[0] / "verdicts.jsonl"
    failed = next(
        number for number, line in enumerate(verdicts.read_text().splitlines()) if '"fail"' in line
    )
    edit_verdict(results, failed, status="pass", reason="passed")
    first, second = names(results)
    where = ("--results-dir", str(results))
    for command in (["compare", first, second], ["show", first], ["report", first]):
        done = run_command(*command, *where, folder=results.parent)
        assert done.code == 2, done.err
        assert f"problems[toy/1].passed is 1, but {first}/verdicts.jsonl gives 2" in done.err
    for command in (["history"], ["leaderboard"], ["report", "--output", "r.html"]):
        done = run_command(*command, *where, folder=results.parent)
        assert done.code == 3
        assert f"problems[toy/1].passed is 1, but {first}/verdicts.jsonl gives 2" in done.err
        assert first not in done.out.split()


def test_history_reads_the_verdicts_of_the_runs_that_it_lists(results: Path) -> None:
    """Those of other runs take time, and nobody asked for them."""
    edit_verdict(results, 0, task_id="toy/99")
    command = ("history", "--results-dir", str(results))
    done = run_command(*command, "--model", "b", folder=results.parent)
    assert (done.code, done.err) == (0, "")
    assert names(results)[1] in done.out.split()
    assert run_command(*command, folder=results.parent).code == 3


@pytest.mark.parametrize(
    ("number", "changes", "message"),
    [
        (0, {"task_id": "toy/99"}, "line 1: is a verdict on toy/99, which is not a problem"),
        (1, {"sample": 0}, "line 2: is a second verdict on toy/0, sample 0"),
        (0, {"status": "fail"}, "line 1: has the status fail and the reason passed"),
        (0, {"integrity": "shared"}, "results.integrity is"),
        (0, {"status": "invalid", "reason": "sandbox-error"}, "problems[toy/0].n is 12, but"),
    ],
)
def test_every_edit_of_a_verdict_is_found(
    results: Path, number: int, changes: dict[str, Any], message: str
) -> None:
    edit_verdict(results, number, **changes)
    with pytest.raises(RunError) as error:
        find_result(names(results)[0], results)
    assert message in str(error.value)


@pytest.mark.parametrize("name", ["protocol.json", "run.json"])
def test_other_files_of_the_folder_are_compared_too(results: Path, name: str) -> None:
    path = results / names(results)[0] / name
    content = json.loads(path.read_text())
    field = "n_samples" if name == "protocol.json" else "created"
    path.write_text(json.dumps({**content, field: 1 if field == "n_samples" else "2020-01-01"}))
    with pytest.raises(RunError, match="contradicts itself"):
        find_result(names(results)[0], results)


def test_a_run_that_was_resumed_and_not_finished_agrees_with_its_result(tmp_path: Path) -> None:
    """A sample that could not be judged is judged again; the result has the earlier state."""
    invalid = [sample(f"t/{i}", status="invalid", reason="sandbox-error") for i in range(2)]
    result = write_run(tmp_path, [*invalid, sample("t/2")])
    assert result is not None
    _, _, later = sample("t/0")
    with (result.folder / "verdicts.jsonl").open("a") as file:
        file.write(json.dumps({"task_id": "t/0", "sample": 0, "status": "pass"} | {
            "reason": "passed", "integrity": "separated", "rule": later.rule,
        }) + "\n")  # fmt: skip
    assert find_result(result.run, tmp_path).results.invalid == 2


def leaves(content: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every number, text and flag of a results file with its place."""
    items = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content)
        if isinstance(content, list)
        else None
    )
    if items is None:
        yield place, content
        return
    for key, value in items:
        if key not in FREE:
            yield from leaves(value, (*place, key))


def change(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return value * 0.9 + 0.01 if isinstance(value, float) else f"{value}x"


UNPROVEN = {
    # Only the folder or nothing in the files says what these must be.
    "timestamp", "run", "not_publishable", "tests_passed", "unscorable", "unsupported", "method",
    "without_examples", "truncated", "benchmark_problems", "problem_selection", "chosen", "samples",
    "engine", "weights_sha256", "prompt_form", "tokenizer_sha256", "template_sha256", "variant",
    "path", "best_of_n", "groups", "version", "marks",
}  # fmt: skip


@pytest.mark.parametrize("name", ["a", "b", "all"])
def test_nearly_every_number_of_a_results_file_follows_from_others(
    name: str, tmp_path: Path
) -> None:
    content = content_of(name)
    path = tmp_path / "mini_20260101_000000.json"
    missed = []
    tried = 0
    for place, value in leaves(content):
        if value is None or place[0] in ("environment", "continued_in") or UNPROVEN & {*place}:
            continue
        edited = copy.deepcopy(content)
        inner = edited
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = change(value)
        path.write_text(json.dumps(edited))
        tried += 1
        try:
            read_result(path)
        except RunError:
            continue
        missed.append(".".join(map(str, place)))
    assert tried > 60
    assert missed == []
