"""``assay leaderboard`` over real results files, and over files that cannot be read."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import assay
from assay.runs import write_result
from tests.conftest import Cli, write_completions
from tests.in_process import run_command
from tests.report.leaderboards import make_result
from tests.runs.consistent import agree

FILE = "completions/humaneval_poe_ollama.jsonl.gz"
MODELS = {"codegemma:7b (ollama)": "codegemma-7b", "qwen2.5-coder:7b (ollama)": "qwen2.5-coder-7b"}
TASKS = [f"HumanEval/{number}" for number in (0, 1, 2, 4, 6, 8, 10, 12)]


def completions(file: Path, model: str) -> Iterator[tuple[str, str]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            if record["model"] == model and record["task_id"] in TASKS:
                yield record["task_id"], record["raw"]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Write results files as other machines could have."""
    folder = tmp_path / "results"
    folder.mkdir()
    for day, (model, passed) in enumerate([("a", 40), ("b", 60), ("a", 50)], 1):
        result = make_result(model, passed, day=day)
        write_result(agree(replace(result, path=folder / result.path.name)))
    return folder


def test_recorded_completions_of_several_models(
    assay: Cli, shared_data: Path, tmp_path: Path
) -> None:
    tasks = [argument for task in TASKS for argument in ("--task", task)]
    for model, name in MODELS.items():
        path = write_completions(tmp_path / f"{name}.jsonl", completions(shared_data / FILE, model))
        done = assay("score", path, "--benchmark", "humaneval", *tasks)
        assert done.returncode == 0, done.stderr
    done = assay("leaderboard")
    assert done.returncode == 0, done.stderr
    assert "recorded elsewhere, n=1" in done.stdout
    assert "Block" not in done.stdout
    rows = re.findall(r"^(\d)  +(\S+) +(\*?)(\d+\.\d) \[", done.stdout, re.M)
    assert [(rank, model, best) for rank, model, best, _ in rows] == [
        ("1", "qwen2.5-coder-7b", "*"), ("2", "codegemma-7b", ""),
    ]  # fmt: skip
    scores = [json.loads(path.read_text()) for path in (tmp_path / "results").glob("*.json")]
    expected = {one["model"]: f"{100 * one['results']['pass_at_1']:.1f}" for one in scores}
    assert {model: score for _, model, _, score in rows} == expected


def test_the_newest_run_is_shown_and_the_others_are_counted(results: Path) -> None:
    done = run_command("leaderboard", folder=results.parent)
    assert done.code == 0, done.err
    assert re.search(r"^1 +b +\*60\.0 \[", done.out, re.M)
    assert re.search(r"^2 +a +50\.0 \[.*\(\+1\)$", done.out, re.M)


@pytest.mark.parametrize("form", ["markdown", "csv", "json", "latex", "html", "evalplus"])
def test_output_goes_to_the_screen_or_into_a_file(results: Path, form: str) -> None:
    printed = run_command("leaderboard", "--format", form, folder=results.parent)
    assert printed.code == 0, printed.err
    written = run_command(
        "leaderboard", str(results), "--format", form, "--output", "board", folder=results.parent
    )
    assert written.out == "board\n"
    assert (results.parent / "board").read_text() == printed.out


def test_the_python_function_gives_the_same(results: Path) -> None:
    board = assay.leaderboard(results, sort="humaneval")
    printed = run_command("leaderboard", "--sort", "humaneval", folder=results.parent)
    assert board.render() == printed.out
    given = [assay.load_run(path) for path in results.glob("*.json")]
    assert assay.leaderboard(given, sort="humaneval") == board


def test_runs_can_be_chosen_by_name_file_and_filter(results: Path) -> None:
    names = ["humaneval_20260101_000000", str(results / "humaneval_20260102_000000.json")]
    done = run_command("leaderboard", *names, *names, "--format", "csv", folder=results.parent)
    lines = list(csv.DictReader(io.StringIO(done.out)))
    assert [(line["model"], line["humaneval"], line["humaneval_others"]) for line in lines] == [
        ("b", "0.6", "0"), ("a", "0.4", "0"),
    ]  # fmt: skip
    done = run_command("leaderboard", "--model", "B", "--format", "csv", folder=results.parent)
    assert [line["model"] for line in csv.DictReader(io.StringIO(done.out))] == ["b"]


def test_an_unfinished_run_is_listed(assay: Cli, tmp_path: Path) -> None:
    samples = write_completions(tmp_path / "m.jsonl", [("mini/0", "def f(): pass")])
    assert assay("score", samples, "--benchmark", "mini", "--task", "mini/0").returncode == 0
    (file,) = (tmp_path / "results").glob("*.json")
    file.unlink()
    for place in ((), (file.with_suffix(""),)):
        done = assay("leaderboard", *place)
        assert re.search(r"^- +m +unfinished$", done.stdout, re.M), done.stderr


def test_baselines_and_facts_come_from_files(results: Path) -> None:
    folder = results.parent
    (folder / "suite.yaml").write_text(
        "baselines: {theirs: {humaneval: 0.9, source: a paper}}\n"
        "targets: {goal: {humaneval: 0.5}}\n"
    )
    (folder / "facts.json").write_text('{"a": {"file_bytes": 1000000000}, "b": {"file_bytes": 1}}')
    done = run_command(
        "leaderboard", "--baselines", "suite.yaml", "--facts", "facts.json", "--columns",
        "size,per-gb", "--pareto", "size", folder=folder,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert re.search(r"^- +theirs \(published\) +90\.0", done.out, re.M)
    assert re.search(r"^- +goal \(target\) +50\.0", done.out, re.M)
    assert re.search(r"^1 +b .* 0\.00 .* ◆$", done.out, re.M)
    assert re.search(r"^2 +a .* 1\.00 +50\.0$", done.out, re.M)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nowhere"], "nowhere: no such result"),
        (["--results-dir", "empty"], "empty: no runs. Start one with `assay eval`."),
        (["--model", "zzz"], "none of the 3 runs match the filters"),
        (["--sort", "zzz"], "--sort zzz: no such column. Choose rank, model, humaneval, size"),
        (["--columns", "zzz"], "--columns zzz: no such column. Choose size"),
        (["--block", "2"], "--block 2: there are only 1"),
        (["--baselines", "none.yaml"], "none.yaml: no such file"),
        (["--baselines", "bad.yaml"], "bad.yaml: "),
        (["--baselines", "high.yaml"], "the score 87.8 is not between 0 and 1"),
        (["--facts", "high.yaml"], "high.yaml: baselines: unknown field"),
    ],
)
def test_errors_are_one_line(results: Path, arguments: list[str], problem: str) -> None:
    (results.parent / "bad.yaml").write_text("a: [")
    (results.parent / "high.yaml").write_text("baselines: {x: {humaneval: 87.8}}")
    done = run_command("leaderboard", *arguments, folder=results.parent)
    assert done.code == 2
    assert problem in done.err
    assert len(done.err.splitlines()) == 1


def test_a_damaged_file_costs_its_own_row(results: Path) -> None:
    (results / "humaneval_20260109_000000.json").write_text("{")
    done = run_command("leaderboard", folder=results.parent)
    assert done.code == 3
    assert done.err.startswith("warning: ")
    assert " b " in done.out
