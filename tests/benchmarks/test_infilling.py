"""HumanEval-Infilling: references pass, gaps are asked for as they are, models without tokens."""

from __future__ import annotations

import ast
import dataclasses
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import assay as api
from assay import benchmarks
from assay.datasets import packaged_file
from assay.errors import UsageError
from assay.extract.rules.infill import fill_in
from assay.formats.marks import middle_of
from assay.judging import references
from assay.models import EngineOptions
from assay.models.opening import DEFAULT_WEIGHTS
from assay.pipeline.prompting import resolve_prompt_settings
from assay.prompts import find_strategy, list_strategies
from assay.sandbox import open_sandbox
from assay.types import Problem
from tests.conftest import Cli, write_completions
from tests.judging.test_references import Watching

SIZES = {"single-line": 1033, "multi-line": 5815, "random-span": 1640, "random-span-light": 164}
LIGHT = "humaneval-infilling-random-span-light"


def missing_code(problem: Problem) -> str:
    return middle_of(problem.reference, problem.prompt, problem.suffix or "")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n.endswith("light") else pytest.mark.slow) for n in SIZES],
)
def test_every_reference_passes_and_equal_ones_are_judged_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path))
    found = benchmarks.load(f"humaneval-infilling-{name}")
    assert len(found.problems) == SIZES[name]
    watching = Watching()
    judge = open_sandbox("process", 2)
    try:
        checked = references.check(found, judge, watching)
    finally:
        judge.close()
    assert checked.unscorable == {}
    assert checked.seconds.keys() == {p.task_id for p in found.problems}
    programs = {(p.reference, p.tests.code) for p in found.problems}
    assert watching.prepared[-1][1:] == (len(programs), len(programs))
    assert {p.tests.integrity for p in found.problems} == {"separated"}


@pytest.mark.parametrize("name", SIZES)
def test_problems_are_gaps_in_solutions_of_humaneval(name: str) -> None:
    problems = benchmarks.load(f"humaneval-infilling-{name}").problems
    originals = {f"HumanEval/{number}" for number in range(164)}
    assert {p.cluster for p in problems} == originals
    for problem in problems:
        assert f"/{problem.cluster}/" in problem.task_id
        assert f"{problem.prompt}{missing_code(problem)}{problem.suffix}" == problem.reference
    light = Counter(p.cluster for p in benchmarks.load(LIGHT).problems)
    assert set(light.values()) == {1}


@pytest.mark.slow
def test_lost_white_space_is_put_back_in_the_documented_share_of_programs() -> None:
    removed: dict[str, Callable[[str], str]] = {
        "the line's end": lambda text: text.rstrip("\n"),
        "the first space": lambda text: text[1:],
        "all spaces before the code": str.lstrip,
    }
    problems = benchmarks.load("humaneval-infilling-single-line").problems
    page = (Path(__file__).parents[2] / "docs" / "infilling.md").read_text()
    for name, remove in removed.items():
        plain = put_back = 0
        for problem in problems:
            lost, suffix = remove(missing_code(problem)), problem.suffix or ""
            wanted = tree(problem.reference)
            plain += tree(f"{problem.prompt}{lost}{suffix}") == wanted
            put_back += tree(fill_in(problem.prompt, lost, suffix).code) == wanted
        assert f"| {name} | {plain:,} | {put_back:,} |" in page


def tree(code: str) -> str:
    try:
        return ast.dump(ast.parse(code))
    except SyntaxError:
        return ""


@pytest.mark.parametrize("form", ["chat", "text", "infill"])
def test_the_prompt_is_prefix_and_suffix_for_every_model(form: str) -> None:
    found = benchmarks.load(LIGHT)
    assert list_strategies(found) == ["standard"]
    assert found.form_for("chat") == found.form_for("text") == "infill"
    problem = found.problems[0]
    prompt = find_strategy("standard", found).build(problem, form)  # type: ignore[arg-type]
    assert (prompt.text, prompt.suffix) == (problem.prompt, problem.suffix)
    assert (prompt.messages, prompt.stop) == ((), ())
    assert missing_code(problem) not in (prompt.text, prompt.suffix)


def test_wrong_middles_fail() -> None:
    found = benchmarks.load(LIGHT)
    chosen = found.problems[:8]
    with api.Judge(dataclasses.replace(found, problems=chosen)) as judge:
        wrong = judge.judge([(p.task_id, f"{p.prompt}{p.suffix}") for p in chosen])
        right = judge.judge([(p.task_id, p.reference) for p in chosen])
    assert {v.status for v in right} == {"pass"}
    assert {v.status for v in wrong} == {"fail"}


def test_scores_have_matches_beside_passes(tmp_path: Path, assay: Cli) -> None:
    """Upstream's samples have the middle. Some here lack a line's end, or differ in a name."""
    chosen = benchmarks.load("humaneval-infilling-single-line").problems[:8]
    changes = (lambda text: text, str.rstrip, lambda text: text.replace("\n", "  # so\n"))
    answers = [(p.task_id, changes[n % 3](missing_code(p))) for n, p in enumerate(chosen)]
    samples = write_completions(tmp_path / "s.jsonl", answers, "completion")
    asked = ("score", samples, "--benchmark", "humaneval-infilling-single-line", "--problems", "8")
    done = assay(*asked, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["results"]["pass_at_1"] == 1.0
    found = result["results"]["infilling"]
    assert found["exact_match"] == 6 / 8
    assert 6 / 8 < found["edit_similarity"] < 1
    assert found["intervals"]["exact_match"]["problems"] == 8
    assert found["intervals"]["edit_similarity"]["method"] == "wilson-clustered"
    assert {p["cluster"] for p in result["problems"]} == {"HumanEval/0", "HumanEval/1"}
    assert result["config"]["prompt_form"] == "infill"
    lines = assay(*asked).stdout.splitlines()
    (exact,) = (line for line in lines if line.startswith("  exact "))
    (similar,) = (line for line in lines if line.startswith("  similar "))
    assert "75.0 %" in exact
    assert "filled in exactly" in exact
    assert "edit similarity" in similar
    again = api.load_run(next((tmp_path / "results").glob("*.json")))
    assert again.results.infilling is not None
    assert again.results.infilling.exact_match.value == 6 / 8


def test_other_benchmarks_have_no_matches(tmp_path: Path, assay: Cli) -> None:
    mini = benchmarks.load("mini")
    samples = write_completions(tmp_path / "s.jsonl", [(p.task_id, "") for p in mini.problems])
    done = assay("score", samples, "--benchmark", "mini", "--json")
    assert "infilling" not in json.loads(done.stdout)["results"]


@pytest.mark.parametrize(
    ("options", "system", "flag"),
    [
        (EngineOptions(prompt_form="chat"), "", "--prompt-form chat"),
        (EngineOptions(prompt_form="text"), "", "--prompt-form text"),
        (EngineOptions(thinking="off"), "", "--thinking"),
        (EngineOptions(), "be brief", "--system"),
    ],
)
def test_settings_of_chats_are_refused(options: EngineOptions, system: str, flag: str) -> None:
    with pytest.raises(UsageError, match=flag):
        resolve_prompt_settings("infill", options, system, ())


def test_a_problem_is_shown_as_prefix_and_suffix(assay: Cli) -> None:
    benchmarks.load("humaneval-infilling-single-line")
    done = assay("prompt", "humaneval-infilling-single-line", "HumanEval/0/L1")
    assert done.returncode == 0, done.stderr
    before, _, after = done.stdout.partition("--- suffix\n")
    assert before.startswith("--- prefix\nfrom typing import List")
    assert before.rstrip().endswith("for idx, elem in enumerate(numbers):")
    assert after.startswith("            if idx != idx2:\n")


@pytest.mark.model
def test_the_default_model_is_refused_in_one_line(assay: Cli, tmp_path: Path) -> None:
    packaged_file(DEFAULT_WEIGHTS, lambda _: None)  # the download would be a line of its own
    benchmarks.load(LIGHT)
    done = assay("eval", LIGHT, "--model", "default", "--problems", "2")
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert "SmolLM2-135M-Instruct.Q4_1: has no fill-in-the-middle tokens" in line
    assert not list(tmp_path.glob("results/*"))


@pytest.mark.model
def test_a_suite_reports_a_model_without_tokens_before_it_runs(assay: Cli, tmp_path: Path) -> None:
    benchmarks.load(LIGHT)
    suite = tmp_path / "suite.yaml"
    suite.write_text(f"models: [default]\nbenchmarks: [mini, {LIGHT}]\n")
    done = assay("suite", suite)
    assert done.returncode == 2
    assert "has no fill-in-the-middle tokens" in done.stderr
    assert not list(tmp_path.glob("results/*"))
