"""A benchmark of the user's own works wherever the name of a benchmark does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import assay
from assay.pipeline.plan import case_groups
from assay.report.pages.run.data import load_run_data
from assay.report.pages.sources import open_sources
from assay.runs import RunReader
from tests.conftest import Cli
from tests.runs.consistent import rehash

OWN = """\
name: toys
licence: MIT
problems:
  - task_id: add
    prompt: |
      def add(a: int, b: int) -> int:
          \"\"\"Return the sum of a and b.\"\"\"
    entry_point: add
    cases: [{args: [1, 2], expected: 3}]
    reference: return a + b
    date: 2024-01-05
    labels: {difficulty: easy}
  - task_id: double
    prompt: Read a line from standard input and print it twice.
    stdin: [{input: "a\\n", output: "a\\na\\n"}]
    date: 2024-06-01
    labels: {difficulty: hard}
"""
ANSWERS = {
    "add": "```python\ndef add(a, b):\n    return a + b\n```",
    "double": "```python\nline = input()\nprint(line)\n```",
}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(OWN)
    return path


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.jsonl"
    lines = [json.dumps({"task_id": task, "solution": text}) for task, text in ANSWERS.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def run(assay: Cli, *arguments: str | Path, code: int = 0) -> str:
    done = assay(*arguments)
    assert done.returncode == code, done.stderr
    return done.stdout


def read_run(folder: Path) -> Path:
    (found,) = (path.parent for path in folder.glob("results/*/run.json"))
    return found


def read_page(folder: Path) -> str:
    """Return all data of the only run's page in a report."""
    (source,) = open_sources([], folder / "results").runs
    return repr(load_run_data(source, assay.load_benchmark))


def test_completions_are_scored_shown_and_reported(
    assay: Cli, own: Path, answers: Path, tmp_path: Path
) -> None:
    done = json.loads(run(assay, "score", answers, "--benchmark", own, "--json", "--workers", "1"))
    assert (done["benchmark"], done["results"]["pass_at_1"]) == ("toys", 0.5)
    assert done["protocol"]["data_sha256"]
    assert set(done["results"]["breakdowns"]["difficulty"]) == {"easy", "hard"}
    folder = read_run(tmp_path)
    assert RunReader(folder).about.benchmark_file == str(own)
    shown = run(assay, "show", folder.name, "double")
    assert "expected 'a\\na', printed 'a'" in shown
    run(assay, "report", "--output", tmp_path / "report.html")
    assert (tmp_path / "report.html").exists()
    assert "print it twice" in read_page(tmp_path)
    assert "toys" in run(assay, "history")


def test_an_evaluation_resumes_and_a_changed_file_begins_another(
    assay: Cli, own: Path, answers: Path, tmp_path: Path
) -> None:
    command = ("eval", "./mine.yaml", "--model", f"replay:{answers}", "--workers", "1", "--json")
    first = json.loads(run(assay, *command))
    assert json.loads(run(assay, *command))["run"] == first["run"]
    moved = tmp_path / "moved.yaml"
    own.rename(moved)
    again = json.loads(run(assay, "eval", moved, *command[2:]))
    assert (again["run"], again["benchmark"]) == (first["run"], "toys")
    assert RunReader(read_run(tmp_path)).about.benchmark_file == str(moved)
    moved.write_text(OWN.replace("expected: 3", "expected: 4").replace("a + b", "a + b + 1"))
    changed = json.loads(run(assay, "eval", moved, *command[2:]))
    assert changed["run"] != first["run"]
    assert changed["protocol"]["hash"] != first["protocol"]["hash"]
    assert changed["results"]["pass_at_1"] == 0
    compared = assay("compare", first["run"], changed["run"])
    assert (compared.returncode, "data_sha256" in compared.stderr) == (2, True)


@pytest.mark.slow
def test_a_prompt_is_shown_unless_the_file_has_changed(
    assay: Cli, own: Path, tmp_path: Path
) -> None:
    run(assay, "eval", own, "--task", "double", "--max-tokens", "1", "--workers", "1")
    folder = read_run(tmp_path)
    assert "Read a line from standard input" in run(assay, "show", folder.name)
    own.write_text(OWN.replace("twice", "thrice"))
    shown = run(assay, "show", folder.name)
    assert f"{own}: has changed since this run" in shown
    assert "thrice" not in shown


def test_a_run_of_someone_else_reveals_no_other_file(assay: Cli, own: Path, tmp_path: Path) -> None:
    run(assay, "eval", own, "--task", "double", "--max-tokens", "1", "--workers", "1")
    folder = read_run(tmp_path)
    secret = tmp_path / "secret.yaml"
    secret.write_text("password: hunter2\n  x: [\n")
    about = json.loads((folder / "run.json").read_text())
    protocol = json.loads((folder / "protocol.json").read_text())
    for file, name in ((str(secret), "toys"), ("", str(secret))):
        (folder / "run.json").write_text(json.dumps({**about, "benchmark_file": file}))
        changed = rehash({**protocol, "benchmark": name})
        (folder / "protocol.json").write_text(json.dumps(changed))
        path = folder.with_suffix(".json")
        result = {**json.loads(path.read_text()), "benchmark": name, "protocol": changed}
        path.write_text(json.dumps(result))
        shown = run(assay, "show", folder.name)
        assert "The prompt cannot be built again" in shown
        assert "hunter2" not in shown
        page = read_page(tmp_path)
        assert "The prompt cannot be built again" in page
        assert "hunter2" not in page


def test_a_suite_names_it_relative_to_its_own_file(
    assay: Cli, own: Path, answers: Path, tmp_path: Path
) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    own.rename(other / "mine.yaml")
    suite = {
        "models": [{"model": f"replay:{answers}", "name": "m", "benchmarks": ["./mine.yaml"]}],
        "benchmarks": [
            {
                "benchmark": "./mine.yaml",
                "targets": {"pass@1": 0.4},
                "baselines": [{"model": "x", "score": 0.1}],
                "label": "difficulty=easy",
                "from": "2024-01-01",
            }
        ],
    }
    (other / "night.yaml").write_text(yaml.safe_dump(suite))
    planned = run(assay, "suite", other / "night.yaml", "--dry-run")
    assert "toys[2024-01-01..][difficulty=easy]" in planned
    done = json.loads(run(assay, "suite", other / "night.yaml", "--json", "--workers", "1"))
    assert [row["benchmark"] for row in done["rows"]] == ["toys[2024-01-01..][difficulty=easy]"]
    assert [row["state"] for row in done["rows"]] == ["complete"]
    assert (done["targets"][0]["benchmark"], done["baselines"][0]["benchmark"]) == ("toys", "toys")
    assert done["results"][0]["results"]["pass_at_1"] == 1
    assert "toys" in run(assay, "leaderboard")


@pytest.mark.slow
def test_several_benchmarks_can_be_named(assay: Cli, own: Path, answers: Path) -> None:
    other = own.with_name("other.yaml")
    other.write_text(OWN.replace("toys", "games"))
    command = ("eval", "./mine.yaml", other, "--model", f"replay:{answers}", "--workers", "1")
    done = json.loads(run(assay, *command, "--json"))
    assert [row["benchmark"] for row in done["rows"]] == ["toys", "games"]
    assert [one["results"]["pass_at_1"] for one in done["results"]] == [0.5, 0.5]


def test_an_unknown_environment_is_a_line(assay: Cli, own: Path) -> None:
    own.write_text("environment: nothing\n" + OWN)
    done = assay("eval", own)
    assert done.returncode == 2
    assert "nothing" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_mistakes_of_a_benchmark_are_mistakes_of_the_suite(assay: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("problems:\n  - prompt: Write f.\n")
    (tmp_path / "night.yaml").write_text("models: [default]\nbenchmarks:\n  - ./bad.yaml\n")
    done = assay("suite", tmp_path / "night.yaml")
    assert done.returncode == 2
    bad = tmp_path / "bad.yaml"
    assert f"Line 3: {bad}: Line 2: the problem has no tests." in done.stderr
    assert f"Line 3: {bad}: Line 2: entry_point: is missing." in done.stderr


def test_it_is_listed_planned_and_prompted(assay: Cli, own: Path) -> None:
    listed = json.loads(run(assay, "benchmarks", own, "--json"))
    assert [(one["name"], one["problems"], one["licence"]) for one in listed] == [
        ("toys", 2, "MIT")
    ]
    assert str(own) in run(assay, "plan", "--benchmark", own)
    assert "print it twice" in run(assay, "prompt", own, "double")
    done = assay("eval", own, "--split", "train")
    assert (done.returncode, "has no split 'train'" in done.stderr) == (2, True)


def test_python_takes_paths(own: Path, answers: Path, tmp_path: Path) -> None:
    result = assay.evaluate(
        own, model=f"replay:{answers}", results_dir=tmp_path / "results", workers=1
    )
    assert (result.benchmark, result.pass_at[1].value) == ("toys", 0.5)
    found = assay.load_benchmark(own)
    assert case_groups(found) == ["cases"]
    with assay.Judge(own, workers=1) as judge:
        assert [v.status for v in judge.judge({"double": "x = input()\nprint(x)\nprint(x)"})] == [
            "pass"
        ]


def test_mixed_tests_have_no_groups(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(
        OWN + "  - {prompt: Write f., entry_point: f, tests: assert f(1)}\n"
    )
    assert case_groups(assay.load_benchmark(tmp_path / "m.yaml")) == []
