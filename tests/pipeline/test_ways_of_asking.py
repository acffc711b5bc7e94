"""Two ways of asking a model, or of judging its answers, never share a protocol's hash."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay import benchmarks, models, sandbox
from assay.cli.eval import evaluate as eval_command
from assay.cli.score import score as score_command
from assay.models import EngineOptions
from assay.models.options import canonical_engine_options
from assay.pipeline import EvalConfig, ProblemSelection, Sampling, evaluate
from assay.pipeline.run import OpenRun
from assay.protocol import Protocol, differences
from assay.protocol import tests_digest as digest_of
from assay.types import Benchmark, ModelIdentity, PromptForm, Request
from tests.conftest import references, write_completions
from tests.pipeline.test_pipeline import ScriptedModel, Watcher

# Every option of `assay eval` is of one of these kinds. A new one must be put where it belongs.
BASE = ("mini", "--problems", "2", "--temperature", "0.8")
# What a model is sent, or how its answer is judged: the hash changes.
IN_PROTOCOL: dict[str, tuple[str, ...]] = {
    "benchmark": ("other",),
    "split": ("--split", "part"),
    "data_dir": ("--data", "."),
    "range": ("--problems", "1:3"),
    "tasks": ("--problems", "0", "--task", "mini/5"),
    "file": ("--problems", "0", "--from-file", "tasks.txt"),
    "n_samples": ("--n-samples", "2"),
    "temperature": ("--temperature", "0.7"),
    "preset": ("--preset", "pass1"),
    "top_k": ("--top-k", "0"),
    "top_p": ("--top-p", "0.95"),
    "min_p": ("--min-p", "0.05"),
    "repetition_penalty": ("--repetition-penalty", "1.1"),
    "max_tokens": ("--max-tokens", "100"),
    "seed": ("--seed", "1"),
    "prompt_strategy": ("--prompt-strategy", "scot"),
    "prompt_form": ("--prompt-form", "text"),
    "prompt_imports": ("--prompt-imports", "none"),
    "system": ("--system", "Be brief."),
    "stop": ("--stop", "END"),
    "thinking": ("--thinking", "off"),
    "engine_options": ("--engine-option", "n_batch=512"),
    "sandbox": ("--sandbox", "other"),
    "time_limit": ("--time-limit", "3"),
}
# Which model it is: runs of different models are compared, and not continued as one.
IDENTITY = {"model", "dtype", "adapter", "base_url", "revision"}
# Neither changes what is asked nor how it is judged: the hash stays.
NEITHER: dict[str, tuple[str, ...]] = {
    "results_dir": ("--results-dir", "elsewhere"),
    "resume": ("--fresh",),
    "as_json": ("--json",),
    "name": ("--name", "mine"),
    "parity_gate": ("--no-parity-gate",),
    "batch_mode": ("--batch-mode", "off"),
    "parallel": ("--parallel", "3"),
    "threads": ("--threads", "1"),
    "device": ("--device", "cpu"),
    "devices": ("--devices", "cpu"),
    "logprobs": ("--logprobs",),
    "timeout": ("--timeout", "9"),
    "answer_timeout": ("--answer-timeout", "9"),
    "requests_per_minute": ("--requests-per-minute", "9"),
    "tokens_per_minute": ("--tokens-per-minute", "9"),
    "price_in": ("--price-in", "1"),
    "price_out": ("--price-out", "1"),
    "sandbox_tier": ("--sandbox-tier", "auto"),
    "workers": ("--workers", "1"),
    "check_references": ("--check-references",),
    "no_cache": ("--no-cache",),
    "select": ("--select", "first"),  # chooses among samples; a score of its own
    # Recorded with the result, and a run with another one is another run.
    "tests_seed": ("--tests-seed", "1"),
    "margin": ("--margin", "1"),  # of --until
}
REFUSES = {"publishable"}  # ends the command, or changes nothing
# The baseline has a number of samples, which is the protocol's; more in test_sequential.py.
ROUNDS = {"until", "against"}
# Where it runs: results are the same, sample by sample (tests/cluster/test_ray.py).
PLACES = {"ray"}
# Of benchmarks with dates, labels or texts as cases, which `mini` has not (test_livecodebench.py).
OF_OTHERS = {"first_day", "last_day", "labels", "all_cases"}
# Its version is in the protocol, if there is another one here (tests/sandbox/test_interpreters.py).
INTERPRETER = {"python"}
# The options that only `assay score` has.
SCORE_ONLY = {
    "samples_file",  # its digest is the protocol's origin
    "engine",  # another judge, named in the protocol
    "model_name", "partial", "check_flaky", "compare_extraction", "cross_check",
}  # fmt: skip


@dataclass(frozen=True)
class Way:
    """What an evaluation was about to do: all that reaches a model and a judge, and its hash."""

    protocol: Protocol
    requests: tuple[Request, ...]
    engine: tuple[Any, ...]
    judged: tuple[Any, ...]

    @property
    def done(self) -> tuple[Any, ...]:
        return self.requests, self.engine, self.judged


class ReadyError(Exception):
    """All is known; nothing is generated."""

    def __init__(self, way: Way) -> None:
        super().__init__()
        self.way = way


class WatchedModel(ScriptedModel):
    """Keeps the options that reach an engine and change what it is sent."""

    def __init__(self, benchmark: Benchmark, options: EngineOptions) -> None:
        super().__init__(benchmark)
        form: PromptForm = "chat" if options.prompt_form == "auto" else options.prompt_form
        self.identity = ModelIdentity("scripted", "test", "w", form)
        named = canonical_engine_options(options.engine_options)
        self.options = options.thinking, options.template_variables, named

    def gpu(self) -> str:
        return ""


def stop_before_the_first(run: OpenRun) -> NoReturn:
    """Take the place of ``complete``, where the first completion would be made."""
    assert isinstance(run.plan.model, WatchedModel)
    tests = [
        (problem.task_id, digest_of(problem.tests), problem.without_rules)
        for problem in run.benchmark.problems
    ]
    kind = run.sandbox.capabilities().kind
    judged = (*tests, run.benchmark.limits, run.benchmark.environment, kind)
    requests = tuple(run.plan.requests(run.keys))
    raise ReadyError(Way(run.protocol, requests, run.plan.model.options, judged))


@pytest.fixture(scope="module", autouse=True)
def _watched(mini: Benchmark) -> Iterator[None]:
    """Evaluate up to the first completion; other benchmarks, data and sandboxes are copies."""
    open_sandbox = sandbox.open_sandbox

    def load(name: str, _: object, data_dir: Path | None) -> Benchmark:
        problems = mini.problems[1:] if name != "mini" else mini.problems
        return replace(mini, name=name, data_sha256=str(data_dir or ""), problems=problems)

    @functools.cache
    def open_kind(kind: str, *_: object) -> sandbox.Sandbox:
        opened = open_sandbox("process", 1)
        capabilities = replace(opened.capabilities(), kind=kind)
        opened.capabilities = lambda: capabilities  # type: ignore[method-assign]
        return opened

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ASSAY_DATA_DIR", raising=False)
        patch.setattr(models, "open_model", lambda _, options, __: WatchedModel(mini, options))
        patch.setattr(benchmarks, "load", load)
        patch.setattr(benchmarks, "of_split", lambda name, split: f"{name}{split}")
        patch.setattr(sandbox, "open_sandbox", open_kind)
        patch.setattr("assay.pipeline.run.complete", stop_before_the_first)
        yield


def way_of(config: EvalConfig) -> Way:
    with pytest.raises(ReadyError) as ready:
        evaluate(config, Watcher())
    return ready.value.way


def way_of_command(*arguments: str) -> Way:
    with pytest.raises(ReadyError) as ready:
        eval_command.main(list(arguments), standalone_mode=False)
    return ready.value.way


@pytest.fixture
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.txt").write_text("mini/7\n")


def names(command: click.Command) -> set[str]:
    return {parameter.name or "" for parameter in command.params}


def test_every_option_is_known_to_change_a_hash_or_not() -> None:
    kinds = (IN_PROTOCOL, IDENTITY, NEITHER, REFUSES, ROUNDS, PLACES, OF_OTHERS, INTERPRETER)
    classified = [name for kind in kinds for name in kind]
    assert len(classified) == len(set(classified))
    assert names(eval_command) == set(classified), "a new option must be classified here"
    assert names(score_command) <= {*classified, *SCORE_ONLY}, "a new option must be classified"


def test_no_setting_is_out_of_the_command_lines_reach() -> None:
    """What Python can set and the command cannot would escape the test above."""
    parts = {"sampling", "engine", "problems"}
    for kind, others in (
        # --fresh is the other side of --resume, and the site is what --ray opens.
        (EvalConfig, {"fresh", "rounds", "site", *parts}),
        (Sampling, set()),
        (EngineOptions, {"longest"}),  # of what max_tokens says
    ):
        fields = {field.name for field in dataclasses.fields(kind)}
        assert fields - others <= names(eval_command)


@pytest.mark.usefixtures("_folder")
def test_options_that_change_what_is_asked_or_judged_change_the_hash() -> None:
    benchmark, *others = BASE
    found = {}
    for name, more in IN_PROTOCOL.items():
        asked = [] if name == "benchmark" else [benchmark]
        found[name] = way_of_command(*asked, *others, *more)
    found[""] = way_of_command(*BASE)
    hashes = {name: way.protocol.hash for name, way in found.items()}
    assert len(set(hashes.values())) == len(hashes), hashes
    base = found.pop("").protocol.to_json()
    assert all(differences(base, way.protocol.to_json()) for way in found.values())


@pytest.mark.usefixtures("_folder")
def test_options_that_change_neither_keep_the_hash() -> None:
    base = way_of_command(*BASE)
    for name, more in NEITHER.items():
        way = way_of_command(*BASE, *more)
        assert (way.protocol.hash, way.done) == (base.protocol.hash, base.done), name


def test_recorded_completions_have_the_hash_of_their_file(mini: Benchmark, tmp_path: Path) -> None:
    answers = references(mini)
    paths = [
        write_completions(tmp_path / "a.jsonl", answers),
        write_completions(tmp_path / "b.jsonl", answers[::-1]),
    ]
    origins = [models.open_recorded(str(path)).identity.weights_sha256 for path in paths]
    assert origins[0] != origins[1]


FORMS = st.sampled_from(["chat", "text"])
OPTIONS = st.sampled_from(
    ["a=1", "a=true", "a=x", 'a="x"', 'a="1"', "a= 1", "b={}", 'b={"y": 1, "x": 2}']
)
ENGINES = st.builds(
    EngineOptions,
    prompt_form=FORMS,
    thinking=st.sampled_from(["", "on", "off", "64", "128"]),
    engine_options=st.lists(OPTIONS, max_size=2, unique_by=lambda text: text[0]).map(tuple),
    parallel=st.integers(0, 2),
)
SAMPLINGS = st.builds(
    Sampling,
    n_samples=st.integers(1, 2),
    temperature=st.sampled_from([0.5, 1.0]),
    top_k=st.sampled_from([None, 0, 40]),
    top_p=st.sampled_from([0.9, 1.0]),
    min_p=st.sampled_from([0.0, 0.1]),
    repetition_penalty=st.sampled_from([1.0, 1.1]),
    max_tokens=st.sampled_from([None, 512, 9]),
    seed=st.integers(0, 1),
)
# Without a temperature, most of these mean nothing.
GREEDY = st.builds(
    Sampling, top_k=st.sampled_from([None, 0, 40]), seed=st.integers(0, 1),
    repetition_penalty=st.sampled_from([1.0, 1.1]), max_tokens=st.sampled_from([None, 512, 9]),
)  # fmt: skip
SELECTIONS = st.builds(ProblemSelection, st.sampled_from(["1", ":1", "0:1", "1:2", "2"]))
SELECTIONS |= st.just(ProblemSelection(tasks=("mini/0",)))
CONFIGS = st.builds(
    EvalConfig,
    benchmark=st.just("mini"),
    results_dir=st.just(Path("results")),
    sampling=SAMPLINGS | GREEDY,
    prompt_strategy=st.sampled_from(["standard", "scot"]),
    prompt_imports=st.sampled_from(["prepended", "none"]),
    problems=SELECTIONS,
    system=st.sampled_from(["", "END", "Be brief."]),
    stop=st.lists(st.sampled_from(["END", "x", "END "]), max_size=3).map(tuple),
    engine=ENGINES,
    sandbox=st.sampled_from(["process", "other"]),
    workers=st.integers(0, 2),
)
PARTS = {"sampling": Sampling, "engine": EngineOptions, "": EvalConfig}


def changed(config: EvalConfig, other: EvalConfig, part: str, name: str) -> EvalConfig:
    """Return a config with one setting of another's."""
    if not part:
        return replace(config, **{name: getattr(other, name)})
    value = getattr(getattr(other, part), name)
    return replace(config, **{part: replace(getattr(config, part), **{name: value})})


def without_contradictions(config: EvalConfig) -> EvalConfig:
    """Return the config without what its other settings refuse."""
    if config.engine.prompt_form == "text":
        config = replace(config, system="")
    if not config.sampling.decide()[0].temperature:
        config = replace(config, sampling=replace(config.sampling, top_p=1.0, min_p=0.0))
    return config


@st.composite
def alike(draw: st.DrawFn) -> tuple[EvalConfig, EvalConfig]:
    """Draw two configs that differ in one setting at most, or in any."""
    one, other = (without_contradictions(draw(CONFIGS)) for _ in range(2))
    if draw(st.booleans()):
        return one, other
    part = draw(st.sampled_from(sorted(PARTS)))
    fields = sorted(field.name for field in dataclasses.fields(PARTS[part]))
    return one, without_contradictions(changed(one, other, part, draw(st.sampled_from(fields))))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(configs=alike())
def test_two_ways_of_asking_never_share_a_hash(
    tmp_path: Path, configs: tuple[EvalConfig, EvalConfig]
) -> None:
    """Equal hashes mean that the same is sent and judged, and the other way round."""
    one, other = (way_of(replace(config, results_dir=tmp_path)) for config in configs)
    assert (one.protocol.hash == other.protocol.hash) == (one.done == other.done)
