"""``--select``: one completion per problem is chosen, and scored beside pass@1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.types import Benchmark
from tests.conftest import Cli, references, write_completions

ASKED = ("--temperature", "0.8", "--n-samples")
EXAMPLE = "mini/1"  # initials("ada king lovelace") is 'AKL', says its prompt
RIGHT = "def initials(name):\n    return ''.join(w[0].upper() for w in name.split())\n"
# What the prompt shows comes out right, what it does not show comes out wrong.
BY_HEART = "def initials(name):\n    return 'AKL'\n"
WRONG = "def initials(name):\n    return name\n"
CRASHES = "def initials(name):\n    raise ValueError\n"
ALWAYS_EQUAL = """
class Equal(str):
    __hash__ = str.__hash__
    def __eq__(self, other): return True
class Strange:
    def __eq__(self, other): return True
def initials(name): return {}
"""


def samples_of(path: Path, task_id: str, *texts: str, **fields: list[Any]) -> Path:
    """Completions of one task, and for each sample the fields that are given."""
    records = [
        {"task_id": task_id, "solution": text, **{name: of[i] for name, of in fields.items()}}
        for i, text in enumerate(texts)
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def selected(assay: Cli, samples: Path, method: str, *more: str) -> dict[str, Any]:
    asked = ("--benchmark", "mini", "--task", EXAMPLE, "--select", method, "--json")
    done = assay("score", samples, *asked, *more)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def chosen(assay: Cli, samples: Path, method: str) -> int:
    best = selected(assay, samples, method)["results"]["best_of_n"]
    sample: int = best["chosen"][EXAMPLE]
    return sample


def test_it_stands_beside_pass_at_1(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    wrong = [(t, code.replace("return", "return None #")) for t, code in references(mini)]
    model = write_completions(tmp_path / "m.jsonl", [*wrong, *references(mini), *references(mini)])
    done = assay("eval", "mini", "--model", model, *ASKED, "3", "--select", "examples", "--json")
    result = json.loads(done.stdout)
    assert result["results"]["pass_at_1"] == pytest.approx(2 / 3)
    best = result["results"]["best_of_n"]
    assert (best["method"], best["n"], best["without_examples"]) == ("examples", 3, 16)
    with_examples = {"mini/1", "mini/4", "mini/7", "mini/12"}
    assert {t for t, sample in best["chosen"].items() if sample == 1} == with_examples
    assert len(best["chosen"]) == 20
    assert best["value"] == pytest.approx(4 / 20)
    assert best["interval"]["problems"] == 20
    assert best["interval"]["low"] < best["value"] < best["interval"]["high"]
    assert done.stderr == ""
    summary = assay("eval", "mini", "--model", model, *ASKED, "3", "--select", "examples").stdout
    assert "pass@1    66.7 %" in summary
    assert "best of 3 20.0 %  [8.1, 41.6] by examples, 16 problems without examples" in summary


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "texts", "sample"),
    [
        ("first", (WRONG, RIGHT), 0),
        ("examples", (WRONG, CRASHES, RIGHT, RIGHT), 2),
        ("agreement", (WRONG, RIGHT, RIGHT + "\n"), 1),
        ("agreement", (CRASHES, CRASHES + "\n", WRONG), 2),
        ("agreement", (CRASHES, CRASHES + "\n"), 0),
        # The hidden tests would choose otherwise, each time.
        ("examples", (WRONG, BY_HEART, RIGHT), 1),
        ("agreement", (WRONG, BY_HEART, RIGHT), 1),
        ("agreement", (RIGHT, WRONG, WRONG + "\n"), 1),
        # Nothing is gained by objects that are equal to everything.
        ("examples", (ALWAYS_EQUAL.format("Strange()"), ALWAYS_EQUAL.format("Equal()"), RIGHT), 2),
        ("agreement", (*(ALWAYS_EQUAL.format("Strange()") + "\n" * i for i in range(3)), RIGHT), 3),
        # No code at all, and text instead of code.
        ("examples", ("I do not know.", RIGHT), 1),
        ("agreement", ("I do not know.", "Nor do I.", RIGHT), 2),
    ],
)
def test_who_is_chosen(
    assay: Cli, tmp_path: Path, method: str, texts: tuple[str, ...], sample: int
) -> None:
    assert chosen(assay, samples_of(tmp_path / "s.jsonl", EXAMPLE, *texts), method) == sample


def test_the_hidden_tests_are_not_looked_at(assay: Cli, tmp_path: Path) -> None:
    samples = samples_of(tmp_path / "s.jsonl", EXAMPLE, BY_HEART, RIGHT)
    result = selected(assay, samples, "examples")["results"]
    assert result["best_of_n"]["value"] == 0.0
    assert result["pass_at_1"] == 0.5
    assert result["passed"] == 1


def test_the_likeliest_is_chosen(assay: Cli, tmp_path: Path) -> None:
    texts = (RIGHT, WRONG, BY_HEART, "")
    samples = samples_of(tmp_path / "s.jsonl", EXAMPLE, *texts, logprob=[-0.9, -0.2, -0.2, None])
    assert chosen(assay, samples, "logprob") == 1


def test_missing_log_probabilities_are_one_line(assay: Cli, tmp_path: Path) -> None:
    samples = samples_of(tmp_path / "s.jsonl", EXAMPLE, RIGHT, WRONG, logprob=[-0.9, None])
    asked = ("--benchmark", "mini", "--task", EXAMPLE, "--select", "logprob", "--json")
    done = assay("score", samples, *asked)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "mini/1: sample 1 has no log-probability" in done.stderr
    assert chosen(assay, samples, "examples") == 0  # nothing was lost


def test_an_unknown_way_is_one_line_and_before_all_work(assay: Cli, tmp_path: Path) -> None:
    samples = samples_of(tmp_path / "s.jsonl", EXAMPLE, RIGHT, WRONG)
    for command in (
        ("score", samples, "--benchmark", "mini"),
        ("eval", "mini", "--model", samples),
    ):
        done = assay(*command, "--select", "best")
        assert done.returncode == 2
        assert "selection method 'best': unknown. Choose agreement, examples, first" in done.stderr
    assert not (tmp_path / "results").exists()


def test_one_sample_is_no_choice(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    model = write_completions(tmp_path / "m.jsonl", references(mini))
    done = assay("eval", "mini", "--model", model, "--select", "agreement")
    assert done.returncode == 0
    assert "--select: has no effect" in done.stderr
    assert "best of" not in done.stdout


@pytest.mark.slow
def test_a_continued_run_chooses_the_same(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    texts = [*references(mini), *((t, "x = 1") for t, _ in references(mini)), *references(mini)]
    model = write_completions(tmp_path / "m.jsonl", texts)
    asked = ("eval", "mini", "--model", model, *ASKED, "3", "--json")
    plain = json.loads(assay(*asked).stdout)
    assert "best_of_n" not in plain["results"]
    folder = tmp_path / "results" / plain["run"]
    # Verdicts come in any order; none comes before its completion is written.
    completions = (folder / "completions.jsonl").read_text().splitlines(keepends=True)[:50]
    keys = {(c["task_id"], c["sample"]) for c in map(json.loads, completions)}
    verdicts = [
        line
        for line in (folder / "verdicts.jsonl").read_text().splitlines(keepends=True)
        if (json.loads(line)["task_id"], json.loads(line)["sample"]) in keys
    ]
    (folder / "completions.jsonl").write_text("".join(completions))
    (folder / "verdicts.jsonl").write_text("".join(verdicts[:33]))
    for method in ("examples", "agreement"):
        continued = json.loads(assay(*asked, "--select", method).stdout)
        fresh = json.loads(assay(*asked, "--select", method, "--results-dir", method).stdout)
        assert continued["results"] == fresh["results"]
        assert continued["results"]["best_of_n"]["method"] == method
        without = {k: v for k, v in continued["results"].items() if k != "best_of_n"}
        assert without == plain["results"]
    assert len((folder / "completions.jsonl").read_text().splitlines()) == 60
    assert len((folder / "verdicts.jsonl").read_text().splitlines()) == 60


def test_history_and_compare_know_pass_at_1_alone(
    assay: Cli, mini: Benchmark, tmp_path: Path
) -> None:
    wrong = [(t, "x = 1") for t, _ in references(mini)]
    model = write_completions(tmp_path / "m.jsonl", [*references(mini), *wrong])
    other = write_completions(tmp_path / "o.jsonl", [*wrong, *wrong])
    runs = [
        json.loads(assay("eval", "mini", "--model", m, *ASKED, "2", *select, "--json").stdout)[
            "run"
        ]
        for m, select in ((other, ()), (model, ("--select", "first")))
    ]
    assert "50.0 %" in assay("history").stdout
    assert "100.0 %" not in assay("history").stdout
    compared = json.loads(assay("compare", *runs, "--json", "--force").stdout)
    assert (compared["pass_at_1_b"], compared["difference"]) == (0.5, 0.5)
    assert [name for name, *_ in compared["protocol_differences"]] == ["origin"]
