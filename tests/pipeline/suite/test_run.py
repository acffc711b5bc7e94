"""Run suites with real engines and small random models."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import assay as package
from assay.api import evaluation, plan_suite
from assay.models import Model
from assay.models.workers.process import EngineProcess
from assay.pipeline import EvalConfig
from assay.pipeline import run as pipeline_run
from assay.pipeline.problems import load_benchmark
from assay.pipeline.suite import plan
from assay.progress import Reporter, Silent
from assay.report.suite import summarize_suite
from assay.report.text import explain_marks, label_marks
from assay.runs import ParityGateOutcome, Result, RunReader, read_result
from assay.runs.stores.suites import list_suites, read_suite
from assay.types import Benchmark
from tests.conftest import ASSAY, Cli
from tests.e2e.test_resume import descendants, survivors
from tests.in_process import run_command

pytest.importorskip("xllamacpp", reason="needs the gguf extra")
from tests.models.small_models import write_small

Samples = dict[tuple[str, int], tuple[object, ...]]


class Counter(Silent):
    def __init__(self) -> None:
        self.loads = 0
        self.notes: list[str] = []

    def loading(self) -> None:
        self.loads += 1

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Two small models, and one that lacks tensors of its architecture."""
    write_small(tmp_path / "one.gguf", ("Q8_0",))
    write_small(tmp_path / "two.gguf", ("Q4_1",))
    write_small(tmp_path / "bad.gguf", ("Q8_0",), architecture="gpt2")
    return tmp_path


def write_suite(folder: Path, names: list[str], **more: Any) -> Path:
    content = {
        "defaults": {"problems": 3, "max_tokens": 8},
        "models": [{"model": f"{name}.gguf", "name": name} for name in names],
        "benchmarks": ["mini"],
        **more,
    }
    path = folder / "night.yaml"
    path.write_text(json.dumps(content))  # JSON is YAML
    return path


def samples(result: Result) -> Samples:
    """Everything about the samples that a user could compare."""
    run = RunReader(result.folder)
    texts = {c.key: (c.text, c.finish_reason, c.tokens_generated) for c in run.read_completions()}
    verdicts = {k: (v.status, v.reason, v.rule) for k, v in run.verdicts.items()}
    return {key: (*texts[key], *verdicts[key]) for key in texts}


@pytest.mark.usefixtures("own_cache")
def test_each_model_is_loaded_once_and_results_are_those_of_single_commands(models: Path) -> None:
    path = write_suite(
        models, ["one", "two"], strategies=["standard", "few-shot"],
        decodings=["greedy", {"name": "hot", "temperature": 1.0, "n_samples": 2}],
    )  # fmt: skip
    counter = Counter()
    done = package.run_suite(path, results_dir=models / "together", reporter=counter)
    assert done.complete
    assert len(done.results) == 8
    assert counter.loads == 2
    assert {result.timing.reused for result in done.results} == {0}
    for outcome in (done.outcomes[1], done.outcomes[6]):
        assert outcome.result is not None
        row, hot = outcome.row, outcome.row.decoding == "hot"
        alone = package.evaluate(
            "mini", model=str(models / f"{row.model}.gguf"), problems="3", max_tokens=8,
            temperature=1.0 if hot else 0.0, n_samples=2 if hot else 1,
            prompt_strategy=row.strategy, engine=package.EngineOptions(name=row.model),
            results_dir=models / "alone", use_cache=False,
        )  # fmt: skip
        assert samples(alone) == samples(outcome.result)
        assert alone.protocol_hash == outcome.result.protocol_hash == row.protocol
        assert (
            dataclasses.replace(alone.results, reasons=outcome.result.results.reasons)
            == outcome.result.results
        )


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Engine processes that were started and benchmarks that were read, in their order."""
    found: list[object] = []
    begin, read = EngineProcess.__init__, load_benchmark

    def begin_and_note(self: EngineProcess[Any], *arguments: Any) -> None:
        found.append(self)
        begin(self, *arguments)

    def note_and_read(config: EvalConfig, reporter: Reporter) -> Benchmark:
        found.append(config.benchmark)
        return read(config, reporter)

    monkeypatch.setattr(EngineProcess, "__init__", begin_and_note)
    monkeypatch.setattr(plan, "load_benchmark", note_and_read)
    return found


def processes(events: list[object]) -> list[EngineProcess[Any]]:
    return [event for event in events if isinstance(event, EngineProcess)]


@pytest.mark.usefixtures("own_cache")
def test_the_first_engine_starts_while_the_problems_are_read(
    models: Path, events: list[object]
) -> None:
    path = write_suite(models, ["one", "two"])
    assert package.run_suite(path, results_dir=models / "r").complete
    assert [type(event) for event in events] == [EngineProcess, str, EngineProcess]
    events.clear()
    counter = Counter()
    assert package.run_suite(path, results_dir=models / "r", reporter=counter).complete
    assert counter.loads == 0
    (unused,) = processes(events)
    assert not unused.is_running


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("failure", [package.ModelError, package.SandboxError])
def test_a_failure_before_the_first_request_ends_the_engine(
    models: Path,
    events: list[object],
    monkeypatch: pytest.MonkeyPatch,
    failure: type[package.AssayError],
) -> None:
    """Otherwise it would take memory that the next model needs."""
    running: list[bool] = []

    def check(_: str, __: object, model: Model, *___: object, **____: object) -> ParityGateOutcome:
        if model.identity.name == "one":
            raise failure("out of order")
        running.extend(process.is_running for process in processes(events))
        return ParityGateOutcome("off")

    monkeypatch.setattr(evaluation, "_require_parity", check)
    done = package.run_suite(write_suite(models, ["one", "two"]), results_dir=models / "r")
    assert [outcome.row.state for outcome in done.outcomes] == ["failed", "complete"]
    assert running == [False]


@pytest.mark.usefixtures("own_cache")
def test_a_failure_costs_one_row_even_if_the_engine_was_only_started(
    models: Path, events: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_suite(models, ["one"])
    package.run_suite(path, results_dir=models / "before")  # its completions are reused below
    events.clear()
    begin, failures = pipeline_run.complete, [package.SandboxError("out of order")]

    def fail_once(run: pipeline_run.OpenRun) -> Any:
        if failures:
            run.plan.model.close()
            raise failures.pop()
        return begin(run)

    monkeypatch.setattr(pipeline_run, "complete", fail_once)
    two = write_suite(models, ["one"], strategies=["standard", "few-shot"])
    done = package.run_suite(two, results_dir=models / "r")
    assert [outcome.row.state for outcome in done.outcomes] == ["failed", "complete"]
    heading, failed, complete, *legend = summarize_suite(done)
    assert heading.endswith("  marks")
    assert "failed" in failed
    (result,) = done.results
    assert complete.endswith(label_marks(result.marks))
    assert legend[: len(result.marks)] == explain_marks(result.marks)
    assert "partial" in result.marks
    first, second = processes(events)
    assert not first.has_settings
    assert second.has_settings


def test_an_engine_is_ended_if_the_suite_has_problems(models: Path, events: list[object]) -> None:
    path = write_suite(models, ["one"], defaults={"tasks": ["nothing"]})
    with pytest.raises(package.AssayError, match="nothing"):
        package.run_suite(path, results_dir=models / "r")
    (started,) = processes(events)
    assert not started.is_running


def test_a_suite_with_known_problems_starts_no_engine(models: Path, events: list[object]) -> None:
    path = write_suite(models, ["one"], benchmarks=["mini", "nothing"])
    with pytest.raises(package.AssayError, match="nothing"):
        package.run_suite(path, results_dir=models / "r")
    assert processes(events) == []


def test_a_plan_starts_no_engine(models: Path, events: list[object]) -> None:
    plan_suite(write_suite(models, ["one"]), EvalConfig("", models / "r"))
    assert [type(event) for event in events] == [str]


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
def test_benchmarks_with_the_same_prompts_share_completions(
    models: Path, shared_data: Path
) -> None:
    path = write_suite(
        models, ["one"], benchmarks=["humaneval", "humanevalplus"],
        defaults={"tasks": ["HumanEval/23", "HumanEval/34"], "max_tokens": 8, "n_samples": 2},
        decodings=[{"name": "hot", "temperature": 1.0}],
    )  # fmt: skip
    done = package.run_suite(path, results_dir=models / "r", data_dir=shared_data)
    base, plus = done.results
    assert (base.timing.reused, plus.timing.reused) == (0, 4)
    assert plus.timing.tokens_generated == 0
    assert plus.timing.inference_s == 0
    assert plus.timing.reused_tokens == base.timing.tokens_generated > 0
    assert {k: v[0] for k, v in samples(base).items()} == {
        k: v[0] for k, v in samples(plus).items()
    }
    lines = RunReader(plus.folder).read_completions()
    assert [completion.reused for completion in lines] == [True] * 4
    # Another run uses the store too, unless it is fresh; a fresh suite still shares.
    again = package.run_suite(path, results_dir=models / "s", data_dir=shared_data)
    assert [result.timing.reused for result in again.results] == [4, 4]
    fresh = package.run_suite(path, results_dir=models / "s", data_dir=shared_data, fresh=True)
    assert [result.timing.reused for result in fresh.results] == [0, 4]
    assert [samples(one) for one in fresh.results] == [samples(one) for one in done.results]


def test_a_model_that_fails_costs_its_rows(models: Path, assay: Cli) -> None:
    path = write_suite(models, ["bad", "two"], strategies=["standard", "few-shot"])
    done = assay("suite", path)
    assert done.returncode == 3, done.stderr
    record = read_suite(models / "results" / "suites" / "night.json")
    assert [(row.model, row.state) for row in record.rows] == [
        ("bad", "failed"), ("bad", "failed"), ("two", "complete"), ("two", "complete"),
    ]  # fmt: skip
    assert "cannot load it" in record.rows[0].error
    assert "failed: bad on mini[:3]" in done.stdout
    (models / "bad.gguf").write_bytes((models / "one.gguf").read_bytes())
    again = assay("suite", path, "--json")
    assert again.returncode == 0, again.stderr
    shown = json.loads(again.stdout)
    assert [row["state"] for row in shown["rows"]] == ["complete"] * 4
    assert [row["run"] for row in shown["rows"][2:]] == [row.run for row in record.rows[2:]]
    assert len(shown["results"]) == 4
    assert [record.suite for record in list_suites(models / "results")] == ["night"]


def test_a_suite_in_which_all_fail_is_an_error(models: Path, assay: Cli) -> None:
    done = assay("suite", write_suite(models, ["bad"]))
    assert done.returncode == 2
    assert "Every evaluation failed" in done.stderr.splitlines()[-1]


def test_several_samples_without_a_decoding_are_drawn(models: Path) -> None:
    """Greedy decoding would give one sample, whatever number the file asks for."""
    defaults = {"problems": 2, "max_tokens": 4, "n_samples": 10}
    path = write_suite(
        models, ["one"], defaults=defaults,
        benchmarks=[
            {"benchmark": "mini", "targets": {"pass@10": 0.5}},
            {"benchmark": "mini", "n_samples": 1, "max_tokens": 5},
        ],
    )  # fmt: skip
    counter = Counter()
    done = package.run_suite(path, results_dir=models / "drawn", reporter=counter)
    several, one = done.results
    assert (several.config.num_samples, several.config.decoding.temperature) == (10, 0.8)
    assert several.config.decoding.top_k == 40
    assert list(several.pass_at) == [1, 10]
    assert (one.config.num_samples, one.config.decoding.temperature) == (1, 0)
    assert [o.row.decoding for o in done.outcomes] == ["temperature 0.8", "greedy"]
    note = "10 samples and no --temperature: they are drawn at temperature 0.8, top-k 40"
    assert counter.notes.count(note) == 1


@pytest.mark.parametrize(
    ("more", "there"),
    [
        ({}, "there is 1"),
        ({"defaults": {"n_samples": 5}}, "there are 5"),
        ({"defaults": {"n_samples": 20}, "decodings": ["greedy"]}, "there is 1"),
        ({"decodings": [{"name": "cold", "temperature": 0, "n_samples": 20}]}, "there is 1"),
    ],
)
def test_a_target_without_enough_samples_is_refused(
    models: Path, assay: Cli, more: dict[str, Any], there: str
) -> None:
    mini = {"benchmark": "mini", "targets": {"pass@1": 0.1, "pass@10": 0.5}}
    done = assay("suite", write_suite(models, ["one"], benchmarks=[mini], **more))
    assert done.returncode == 2
    wanted = f"the target pass@10 of mini needs 10 samples per problem, and {there}."
    assert [wanted in line for line in done.stderr.splitlines() if "target" in line] == [True]
    assert not list(models.glob("results/*"))


@pytest.mark.parametrize(
    ("options", "samples", "decoding", "says"),
    [
        ((), 10, (0.8, 40), "10 samples and no --temperature: they are drawn at temperature 0.8"),
        (("--temperature", "0"), 1, (0.0, 1), "1 sample is generated instead of 10"),
        (("--temperature", "0.2"), 10, (0.2, 40), ""),
    ],
)
def test_eval_decides_the_temperature_of_several_samples(
    models: Path, options: tuple[str, ...], samples: int, decoding: tuple[float, int], says: str
) -> None:
    done = run_command(
        "eval", "mini", "--model", "one.gguf", "--problems", "1", "--max-tokens", "4",
        "--n-samples", "10", *options, folder=models,
    )  # fmt: skip
    assert done.code == 0, done.err
    (path,) = models.glob("results/*.json")
    result = read_result(path)
    settled = result.config.decoding
    assert (result.config.num_samples, (settled.temperature, settled.top_k)) == (samples, decoding)
    assert list(result.pass_at) == [1, 10][: 1 if samples == 1 else 2]
    assert says in done.err
    assert ("pass@10" in done.out) == (samples == 10)


def test_make_gives_a_temperature_only_if_one_is_given() -> None:
    """With ``NUM_SAMPLES=20`` alone, the temperature is left to the command."""
    root = Path(__file__).parents[3]
    for given, expected in (((), ""), (("TEMPERATURE=0.2",), "--temperature 0.2")):
        done = subprocess.run(
            ["make", "-n", "eval-humaneval", "NUM_SAMPLES=20", *given],
            cwd=root, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert "--n-samples 20" in done.stdout
        assert ("--temperature" in done.stdout) == bool(expected)
        assert expected in done.stdout


def test_targets_and_published_scores_are_shown(models: Path, assay: Cli) -> None:
    benchmark = {
        "benchmark": "mini",
        "targets": {"pass@1": 0.5},
        "baselines": [{"model": "GPT-4", "score": 0.67, "source": "a report"}],
    }
    done = assay("suite", write_suite(models, ["one"], benchmarks=[benchmark]))
    assert done.returncode == 0, done.stderr
    assert "target  mini pass@1 50.0 %: reached by none; missed by one (0.0 %)" in done.stdout
    assert "67.0 %  GPT-4 (published, not measured by assay, a report)" in done.stdout


@pytest.mark.usefixtures("own_cache")
def test_a_dry_run_counts_requests_and_estimates_by_earlier_runs(models: Path, assay: Cli) -> None:
    path = write_suite(models, ["one"], benchmarks=["mini"])
    with_cache = {"ASSAY_NO_CACHE": "0"}
    plan = json.loads(assay("suite", path, "--dry-run", "--json", env=with_cache).stdout)
    (row,) = plan["rows"]
    assert (row["requests"], row["done"], row["new_tokens"], row["seconds"]) == (3, 0, 24, None)
    assert row["detectable"] is None  # three problems show nothing
    assert not (models / "results").exists()
    assert assay("suite", path, env=with_cache).returncode == 0
    plan = json.loads(assay("suite", path, "--dry-run", "--json", env=with_cache).stdout)
    assert plan["rows"][0]["done"] == 3
    longer = assay("suite", path, "--dry-run", "--json", "--problems", "10", env=with_cache).stdout
    (row,) = json.loads(longer)["rows"]
    assert (row["requests"], row["done"]) == (10, 3)
    assert 0.5 < row["detectable"] < 1
    shown = assay("suite", path, "--dry-run", "--problems", "10", env=with_cache).stdout
    assert f" {100 * row['detectable']:.1f} points " in shown
    assert row["seconds"] > 0
    assert row["source"].startswith("mini_")


def test_several_benchmarks_and_models_are_a_suite(models: Path, assay: Cli) -> None:
    two = ("--model", models / "one.gguf", "--model", models / "two.gguf")
    done = assay("eval", "mini", *two, "--problems", "2", "--max-tokens", "4", "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert [row["model"] for row in shown["rows"]] == [r["model"] for r in shown["results"]]
    assert len({row["run"] for row in shown["rows"]}) == 2
    assert not (models / "results" / "suites").exists()
    refused = assay("eval", "mini", *two, "--name", "x")
    assert refused.returncode == 2
    assert "--name" in refused.stderr


def start(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*ASSAY, "suite", str(path), "--json"], cwd=path.parent,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.slow
def test_kill_9_loses_only_work_in_progress(models: Path) -> None:
    path = write_suite(
        models, ["one", "two"], defaults={"problems": 4, "max_tokens": 24, "n_samples": 20},
        decodings=[{"name": "hot", "temperature": 1.0}],
    )  # fmt: skip
    results = models / "results"

    def lines() -> int:
        files = results.glob("*/completions.jsonl")
        return sum(file.read_bytes().count(b"\n") for file in files)

    for enough in (5, 85):  # in the first evaluation, and in the second
        process = start(path)
        deadline = time.monotonic() + 240
        while lines() < enough:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        family = descendants(process.pid)
        process.kill()
        process.communicate()
        assert survivors(family) == []
    before = lines()
    out, err = start(path).communicate(timeout=300)
    shown = json.loads(out)
    assert [row["state"] for row in shown["rows"]] == ["complete"] * 2, err
    assert len(list(results.glob("mini_*.json"))) == 2  # no run was begun twice
    assert before <= lines() <= 160 + 2  # half a line may have been written
    for result, row in zip(shown["results"], shown["rows"], strict=True):
        alone = package.evaluate(
            "mini", model=str(models / f"{row['model']}.gguf"), problems="4", max_tokens=24,
            temperature=1.0, n_samples=20, engine=package.EngineOptions(name=row["model"]),
            results_dir=models / "alone", use_cache=False,
        )  # fmt: skip
        resumed = package.load_run(results / f"{result['run']}.json")
        assert samples(alone) == samples(resumed)
