"""A suite's file: what it may say, and that all of its problems are listed with their lines."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import cast

import pytest

from assay.data.checked_files import Mistakes
from assay.errors import UsageError
from assay.models import EngineOptions, Model
from assay.pipeline import EvalConfig, ProblemSelection
from assay.pipeline.plan import plan_evaluation
from assay.pipeline.problems import SelectedProblems
from assay.pipeline.suite.file import load_suite
from assay.pipeline.suite.plan import PlannedRun, ReadyRun, plan_runs
from assay.pipeline.suite.run import _SuiteRunner
from assay.pipeline.suite.suite import (
    RunSettings,
    Suite,
    SuiteBenchmark,
    SuiteError,
    SuiteModel,
)
from assay.progress import Silent
from assay.runs.stores.suites import SuiteBaseline
from assay.types import Benchmark
from tests.conftest import Cli
from tests.pipeline.test_pipeline import ScriptedModel

GOOD = """\
suite: night
defaults:
  problems: 20
  threads: 4
  system: Be brief.
models:
  - default
  - model: a.gguf
    name: small
    threads: 2
    thinking: off
    engine_options: {rope_freq_base: 10000}
    n_samples: 3
    benchmarks: [humaneval]
    decodings: [hot]
benchmarks:
  - benchmark: humaneval
    max_tokens: 300
    targets: {pass@1: 0.35}
    baselines:
      - {model: GPT-4, score: 0.67, source: "the report"}
  - benchmark: mbpp
    split: train
    strategies: [cgo]
    decodings: [greedy]
strategies: [standard, few-shot]
decodings:
  - greedy
  - {name: hot, temperature: 0.8, top_p: 0.95, n_samples: 10, max_tokens: 200}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "night.yaml"
    path.write_text(text)
    return path


def plan(path: Path) -> list[PlannedRun]:
    problems = Mistakes(str(path), SuiteError)
    runs = plan_runs(load_suite(path), EvalConfig("", path.parent), problems)
    problems.report()
    return runs


def test_every_combination_is_planned_model_by_model(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").touch()
    runs = plan(write(tmp_path, GOOD))
    found = [
        (r.model.name, r.config.benchmark, r.config.prompt_strategy, r.decoding.name) for r in runs
    ]
    first = [
        ("default", "humaneval", strategy, decoding)
        for strategy in ("standard", "few-shot")
        for decoding in ("greedy", "hot")
    ]
    second = [("small", "humaneval", strategy, "hot") for strategy in ("standard", "few-shot")]
    assert found == [*first, ("default", "mbpp", "cgo", "greedy"), *second]


def test_the_nearest_entry_overrides(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").touch()
    runs = plan(write(tmp_path, GOOD))
    greedy, hot, small = runs[0].config, runs[1].config, runs[-1].config
    assert (greedy.sampling.n_samples, greedy.sampling.max_tokens) == (1, 300)
    # The benchmark's limit of tokens overrides that of the decoding.
    assert (hot.sampling.n_samples, hot.sampling.max_tokens) == (10, 300)
    assert (hot.sampling.temperature, hot.sampling.top_p) == (0.8, 0.95)
    assert small.sampling.n_samples == 3
    assert greedy.problems == ProblemSelection("20")
    assert greedy.system == "Be brief."
    assert greedy.engine == EngineOptions(threads=4)
    assert small.engine == EngineOptions(
        threads=2, name="small", thinking="off", engine_options=("rope_freq_base=10000",)
    )
    assert small.model == str(tmp_path / "a.gguf")
    assert runs[4].config.split == "train"


def test_targets_and_published_scores_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").touch()
    suite = load_suite(write(tmp_path, GOOD))
    assert suite.name == "night"
    assert suite.benchmarks[0].targets == {"pass@1": 0.35}
    assert suite.benchmarks[0].baselines == (
        SuiteBaseline("humaneval", "GPT-4", 0.67, source="the report"),
    )


WINDOW = """\
defaults: {from: 2024-02-01}
models: [default]
benchmarks:
  - benchmark: leetcodedataset
    to: "2025-01-31"
    label: difficulty=hard
  - benchmark: leetcodedataset
    label: [difficulty=easy]
    problems: 5:20
"""


def test_problems_are_selected_by_day_and_label(tmp_path: Path) -> None:
    path = write(tmp_path, WINDOW)
    first, second = (run.config.problems for run in plan(path))
    hard, easy = ("difficulty=hard",), ("difficulty=easy",)
    assert first == ProblemSelection("", (), None, "2024-02-01", "2025-01-31", hard)
    assert second == ProblemSelection("5:20", (), None, "2024-02-01", "", easy)  # not 320
    base = EvalConfig("", tmp_path, problems=ProblemSelection("3"))
    planned = plan_runs(load_suite(path), base, Mistakes(str(path), SuiteError))
    # The command's range counts the problems of the window.
    assert planned[1].config.problems == ProblemSelection("3", (), None, "2024-02-01", "", easy)


BAD = """\
suite: a/b
defaults:
  n_samples: two
  device_: cpu
models:
  - model: default
    name: a
  - model: missing.gguf
    name: a
    benchmarks: [humaneval]
    engine_options: {day: 2024-01-01}
  - name_: x
benchmarks:
  - mini
  - benchmark: minni
    targets: {pass@1: 35, best: 0.1}
    baselines:
      - {model: GPT-4, score: 0.67, source_: x}
      - {model: GPT-4, score: 0.67, figure: best}
  - benchmark: mini
    n_samples: 0
    problems: -1
    stop: [""]
    decodings: []
strategies: [standard, foo]
decodings:
  - greedy
  - {name: hot, temperature: -1}
  - pass99
  - greedy
  - {name: "", select: best}
greedy: 1
"""
PROBLEMS = {
    1: ["is not a name"],
    3: ["field 'n_samples'"],
    4: ["Did you mean 'device'?"],
    8: ["missing.gguf: is not a file or folder", "the model 'a' is also in line 6"],
    10: ["'humaneval' is not a benchmark of this suite"],
    11: ["is not plain data"],
    12: ["a model needs 'model'", "Did you mean 'name'?"],
    15: ["benchmark 'minni': unknown"],
    16: ["35 is not a share", "'best' is not a figure"],
    18: ["Did you mean 'source'?"],
    19: ["'best' is not a figure"],
    21: ["--n-samples 0: must be at least 1"],
    22: ["--problems -1: is not a number"],
    23: ["--stop: the text is empty"],
    24: ["there are no decodings"],
    25: ["prompt strategy 'foo': unknown"],
    28: ["--temperature"],
    29: ["pass99"],
    30: ["the decoding 'greedy' is also in line 27"],
    31: ["the name is empty", "selection method 'best': unknown"],
    32: ["unknown key 'greedy'"],
}


def test_all_problems_are_listed_with_their_lines(assay: Cli, tmp_path: Path) -> None:
    done = assay("suite", write(tmp_path, BAD))
    assert done.returncode == 2
    assert done.stdout == ""
    *lines, last = done.stderr.splitlines()
    lines = [line for line in lines if line.startswith("Line ")]  # the model may be fetched first
    problems = f"has {len(lines)} problems. Correct them; nothing was loaded."
    assert last == f"assay: {tmp_path / 'night.yaml'}: {problems}"
    for number, wanted in PROBLEMS.items():
        here = [line for line in lines if line.startswith(f"Line {number}: ")]
        for text in wanted:
            assert any(text in line for line in here), (number, text, lines)
    assert {int(line.split()[1].rstrip(":")) for line in lines} == set(PROBLEMS)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not a mapping"),
        ("models: [", "not valid YAML"),
        ("models: [default]", "there are no benchmarks"),
        ("models: [default]\nbenchmarks: [mini]\nstrategies: []", "there are no strategies"),
        ("models: default\nbenchmarks: [mini]", "is not a list"),
        ("models: [default]\nmodels: [default]\nbenchmarks: [mini]", "'models' occurs twice"),
        ("models: [default]\nbenchmarks: [mini, mini]", "is the same evaluation as"),
        ("models: [{model: default, name: x}, {model: default, name: y}]\nbenchmarks: [mini]",
         "is the same evaluation as"),
        ("models: [{model: default, thinking: maybe}]\nbenchmarks: [mini]", "--thinking"),
        ("models: [default]\nbenchmarks: [{benchmark: mini, tasks: [x]}]", "x: is not a task"),
        ("models: [{model: default, adapter: folder}]\nbenchmarks: [mini]", "--adapter"),
        ("models: [{model: default, prompt_form: text, system: x}]\nbenchmarks: [mini]",
         "--system"),
        ("models: [{model: default, n_samples: 1.5}]\nbenchmarks: [mini]", "n_samples"),
        ("models: [default]\nbenchmarks: [{benchmark: mini, from: soon}]", "--from soon: is not"),
        ("models: [default]\nbenchmarks: [{benchmark: mini, to: 3}]", "field 'to'"),
        ("models: [default]\nbenchmarks: [{benchmark: mini, label: hard}]", "--label hard: has no"),
        ("models: [default]\nbenchmarks: [{benchmark: mini, label: a=b}]", "is not a label"),
        ("models: [default]\nbenchmarks: [{benchmark: mini, to: 2024-01-01}]", "have no dates"),
        ("models: [default]\nbenchmarks: [{benchmark: mini, to: 2024-01-01, from: 2024-01-02}]",
         "is after --to"),
        ("models: [default]\nbenchmarks: [./none.yaml]", "no such file"),
        ("models: [default]\nbenchmarks: [{benchmark: ./none.yaml, split: x}]", "has no split 'x'"),
        ("models: &a [*a]\nbenchmarks: [mini]", "not valid YAML"),
        ("models: [\x7f]", "not valid YAML"),
    ],
)  # fmt: skip
def test_a_bad_file_is_a_line(text: str, problem: str, assay: Cli, tmp_path: Path) -> None:
    done = assay("suite", write(tmp_path, text))
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results").exists()


def test_a_file_that_is_not_there_is_a_line(assay: Cli, tmp_path: Path) -> None:
    done = assay("suite", tmp_path / "none.yaml")
    assert done.returncode == 2
    assert "no such file" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_errors_have_every_problem(tmp_path: Path) -> None:
    path = write(tmp_path, "models: []\nbenchmarks: []\n")
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    assert isinstance(caught.value, UsageError)
    assert len(caught.value.problems) == 2
    assert "Line 1: there are no models." in str(caught.value)


def test_targets_of_a_split_have_its_name_in_results(mini: Benchmark, tmp_path: Path) -> None:
    targets = {"pass@1": 0.5}
    entries = tuple(
        SuiteBenchmark("mini", RunSettings(split=split), targets=targets) for split in ("", "train")
    )
    suite = Suite((SuiteModel("m"),), entries)
    runs, model = [], cast(Model, ScriptedModel(mini))
    for entry in entries:
        config = EvalConfig("mini", tmp_path, split=entry.settings.split or "")
        planned = PlannedRun(config, suite.models[0], entry, suite.decodings[0])
        name = f"mini-{config.split}" if config.split else "mini"
        selected = SelectedProblems(dataclasses.replace(mini, name=name), "", 20)
        key = ("m", EngineOptions())
        runs.append(ReadyRun(planned, plan_evaluation(config, model, selected), key))
    record = _SuiteRunner(suite, runs, Silent(), None)._record()
    names = ["mini", "mini-train"]
    assert [target.benchmark for target in record.targets] == names
    assert [row.benchmark for row in record.rows] == names
