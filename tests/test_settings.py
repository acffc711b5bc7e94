"""Options that change what a model is sent: their meaning, their limits, their place in a hash."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay import models
from assay.errors import UsageError
from assay.models import EngineOptions
from assay.models.settings import canonical_engine_options, template_variables
from assay.pipeline import EvalConfig, ProblemSelection, Sampling, evaluate
from assay.pipeline.asking import complete_prompt, resolve_asking
from assay.prompts import strategies
from assay.protocol import Asking, Protocol, differences
from assay.runs import render_result
from assay.types import Benchmark, Decoding, Message, ModelIdentity, Prompt
from tests.conftest import references, write_completions
from tests.test_pipeline import ScriptedModel, Watcher
from tests.test_protocol import BASE

SAMPLED = EvalConfig(
    "mini", Path("results"), sampling=Sampling(temperature=0.8), problems=ProblemSelection("1")
)
# Every option is of one of these kinds. A new one must be put where it belongs.
# What a model is sent, or how its answer is judged, with another value: the hash changes.
IN_PROTOCOL: dict[str, Any] = {
    "problems": ProblemSelection("2"),
    "prompt_strategy": "scot",
    "system": "Be brief.",
    "stop": ("END",),
    "prompt_imports": "none",
}
SAMPLING_IN_PROTOCOL: dict[str, Any] = {
    "n_samples": 2,
    "temperature": 0.7,
    "top_k": 0,
    "top_p": 0.95,
    "min_p": 0.05,
    "repetition_penalty": 1.1,
    "max_tokens": 100,
    "seed": 1,
}
ENGINE_IN_PROTOCOL: dict[str, Any] = {
    "prompt_form": "text",
    "thinking": "off",
    "engine_options": ("n_batch=512",),
}
# The same, but another value needs other data or another sandbox; the field it decides.
DECIDES = {
    "benchmark": "benchmark",
    "split": "benchmark",
    "data_dir": "data_sha256",
    "sandbox": "sandbox",
}
# Which model it is: runs of different models are compared, and not continued as one.
IDENTITY = {"model"}
PARTS = {"sampling", "engine"}  # whose own options are classified one by one
ENGINE_IDENTITY = {"dtype", "adapter", "base_url", "revision"}
# Neither changes what is asked nor how it is judged.
NEITHER = {
    "results_dir", "sandbox_tier", "workers", "no_cache", "check_references", "fresh", "gate",
    "select",  # chooses among samples; a score of its own
    "tests_seed",  # recorded with the result, and a run with another one is another run
}  # fmt: skip
ENGINE_NEITHER = {
    "batch_mode", "parallel", "device", "logprobs", "timeout", "answer_timeout",
    "requests_per_minute", "tokens_per_minute", "price_in", "price_out", "longest", "threads",
    "name",  # only what it is called
}  # fmt: skip


def names(kind: type) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def test_every_option_is_known_to_change_a_hash_or_not() -> None:
    for kind, groups in (
        (EvalConfig, (IN_PROTOCOL, DECIDES, IDENTITY, NEITHER, PARTS)),
        (Sampling, (SAMPLING_IN_PROTOCOL,)),
        (EngineOptions, (ENGINE_IN_PROTOCOL, ENGINE_IDENTITY, ENGINE_NEITHER)),
    ):
        classified = [name for group in groups for name in group]
        assert len(classified) == len(set(classified))
        assert set(classified) == names(kind), "a new option must be classified here"
    assert set(DECIDES.values()) <= names(Protocol)


def hash_of(
    config: EvalConfig, mini: Benchmark, folder: Path, patch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """The protocol of an evaluation that is really made."""

    def open_model(_: str, options: EngineOptions, __: object) -> ScriptedModel:
        model = ScriptedModel(mini)
        form = "chat" if options.prompt_form == "auto" else options.prompt_form
        model.identity = ModelIdentity("scripted", "test", "w", form)
        return model

    patch.setattr(models, "open_model", open_model)
    found = render_result(evaluate(replace(config, results_dir=folder), Watcher()))
    for name in (*names(Asking), *names(Decoding)):
        inside = found["protocol"]["asking" if name in names(Asking) else "decoding"]
        assert found["config"][name] == inside[name]
    protocol: dict[str, Any] = found["protocol"]
    return protocol


def test_no_option_that_changes_what_is_sent_keeps_the_hash(
    mini: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = {"": SAMPLED}
    configs |= {name: replace(SAMPLED, **{name: value}) for name, value in IN_PROTOCOL.items()}
    for name, value in SAMPLING_IN_PROTOCOL.items():
        configs[name] = replace(SAMPLED, sampling=replace(SAMPLED.sampling, **{name: value}))
    for name, value in ENGINE_IN_PROTOCOL.items():
        configs[name] = replace(SAMPLED, engine=EngineOptions(**{name: value}))
    found = {name: hash_of(config, mini, tmp_path, monkeypatch) for name, config in configs.items()}
    assert len({protocol["hash"] for protocol in found.values()}) == len(configs)
    for name, protocol in found.items():
        if name:
            assert differences(found[""], protocol)


OPTIONS = st.sampled_from(
    ["a=1", "a=true", "a=x", 'a="x"', 'a="1"', "a= 1", "b={}", 'b={"y": 1, "x": 2}']
)
WORDS = st.sampled_from(["END", "\ndef ", "x", "END "])
ENGINES = st.builds(
    EngineOptions,
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
CONFIGS = st.builds(
    EvalConfig,
    benchmark=st.just("mini"),
    results_dir=st.just(Path("results")),
    sampling=SAMPLINGS,
    prompt_strategy=st.sampled_from(["standard", "scot"]),
    system=st.sampled_from(["", "END", "Be brief."]),
    stop=st.lists(WORDS, max_size=3).map(tuple),
    engine=ENGINES,
)


def sent(config: EvalConfig, benchmark: Benchmark) -> Any:
    """All that reaches a model in the chat form, as its engine gets it."""
    strategy = strategies.get(config.prompt_strategy)
    asking = resolve_asking("chat", config.engine, config.system, config.stop)
    prompts = [complete_prompt(strategy.build(p, "chat"), asking) for p in benchmark.problems[:2]]
    return (
        prompts, config.sampling.resolve(), config.sampling.n_samples, config.engine.thinking,
        template_variables(config.engine), canonical_engine_options(config.engine.engine_options),
    )  # fmt: skip


def protocol_of(config: EvalConfig) -> Protocol:
    strategy = strategies.get(config.prompt_strategy)
    return replace(
        BASE,
        n_samples=config.sampling.n_samples,
        prompt_strategy=strategy.name,
        prompt_strategy_version=strategy.version,
        asking=resolve_asking("chat", config.engine, config.system, config.stop),
        decoding=config.sampling.resolve(),
    )


def changed(config: EvalConfig, other: EvalConfig, name: str) -> EvalConfig:
    """Return a config with one option of another's."""
    if name in SAMPLING_IN_PROTOCOL:
        value = getattr(other.sampling, name)
        return replace(config, sampling=replace(config.sampling, **{name: value}))
    return replace(config, **{name: getattr(other, name)})


@given(
    one=CONFIGS,
    other=CONFIGS,
    name=st.sampled_from(sorted({*IN_PROTOCOL, *SAMPLING_IN_PROTOCOL, "engine"})),
)
def test_two_ways_of_asking_never_share_a_hash(
    mini: Benchmark, one: EvalConfig, other: EvalConfig, name: str
) -> None:
    """Equal hashes mean that the same is sent, and the same is sent under equal hashes."""
    for a, b in ((one, other), (one, changed(one, other, name))):
        same_hash = protocol_of(a).hash == protocol_of(b).hash
        assert same_hash == (sent(a, mini) == sent(b, mini))


def test_a_prompt_gets_one_system_message_and_each_stop_word_once() -> None:
    asking = resolve_asking("chat", EngineOptions(), "Be brief.", ("b", "a", "b", "own"))
    said = Message("user", "hi")
    found = complete_prompt(Prompt((said,), stop=("own",)), asking)
    assert found == Prompt((Message("system", "Be brief."), said), stop=("own", "a", "b"))
    assert complete_prompt(found, asking) == found
    assert complete_prompt(Prompt(text="x"), replace(asking, stop=())) == Prompt(text="x")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"temperature": 1.0, "top_p": 0.0}, "--top-p must be above 0 and at most 1, got 0.0"),
        ({"temperature": 1.0, "top_p": 1.1}, "--top-p must be"),
        ({"temperature": 1.0, "top_p": float("nan")}, "--top-p must be"),
        ({"temperature": 1.0, "min_p": 1.0}, "--min-p must be 0 or more and less than 1"),
        ({"temperature": 1.0, "min_p": -0.1}, "--min-p must be"),
        ({"repetition_penalty": 0.0}, "--repetition-penalty must be a finite number above 0"),
        ({"repetition_penalty": float("inf")}, "--repetition-penalty must be"),
        ({"top_p": 0.9}, "--top-p: temperature 0 is greedy"),
        ({"min_p": 0.1}, "--min-p: temperature 0 is greedy"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        Sampling(**settings).resolve()


def test_greedy_keeps_its_spelling() -> None:
    assert Sampling(seed=7).resolve() == Decoding(max_tokens=512)
    punished = Sampling(seed=7, repetition_penalty=1.2).resolve()
    assert punished == Decoding(max_tokens=512, repetition_penalty=1.2)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"thinking": "maybe"}, "--thinking must be on, off or a number of tokens"),
        ({"thinking": "0"}, "--thinking must be"),
        ({"thinking": "-1"}, "--thinking must be"),
        ({"thinking": "012"}, "--thinking must be"),
        ({"thinking": "9" * 5000}, "--thinking must be"),
        ({"engine_options": ("x",)}, "--engine-option x: is not key=value"),
        ({"engine_options": ("=1",)}, "is not key=value"),
        ({"engine_options": ("a=1", "a=2")}, "--engine-option a: is given twice"),
        ({"engine_options": ("a=1e999",)}, "--engine-option a: is not valid JSON"),
        ({"engine_options": ("a=\ud800",)}, "--engine-option a: is not valid JSON"),
        ({"engine_options": ("chat_template_kwargs=3",)}, "is not a JSON object"),
    ],
)
def test_engine_settings_without_a_meaning_are_refused(
    options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        EngineOptions(**options)


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (("", ("",)), "--stop: the text is empty"),
        (("", ("a\0b",)), "--stop: contains a NUL"),
        (("\ud800", ()), "--system: is not UTF-8"),
    ],
)
def test_texts_that_cannot_be_sent_are_refused(
    texts: tuple[str, tuple[str, ...]], problem: str, tmp_path: Path
) -> None:
    system, stop = texts
    with pytest.raises(UsageError, match=problem):
        evaluate(EvalConfig("mini", tmp_path, system=system, stop=stop), Watcher())


def test_a_base_model_has_no_system_message() -> None:
    with pytest.raises(UsageError, match="--system: the model is asked in the text form"):
        resolve_asking("text", EngineOptions(), "Be brief.", ())


@pytest.mark.parametrize(
    ("config", "flag"),
    [
        ({"system": "s"}, "--system"),
        ({"stop": ("s",)}, "--stop"),
        ({"sampling": Sampling(temperature=1.0, top_p=0.9)}, "--top-p"),
        ({"sampling": Sampling(repetition_penalty=1.1)}, "--repetition-penalty"),
        ({"engine": EngineOptions(thinking="on")}, "--thinking"),
        ({"engine": EngineOptions(engine_options=("a=1",))}, "--engine-option"),
        ({"engine": EngineOptions(revision="main")}, "--revision"),
    ],
)
def test_recorded_completions_cannot_be_asked_otherwise(
    mini: Benchmark, tmp_path: Path, config: dict[str, Any], flag: str
) -> None:
    path = write_completions(tmp_path / "samples.jsonl", references(mini))
    with pytest.raises(UsageError, match=flag):
        evaluate(EvalConfig("mini", tmp_path, model=f"replay:{path}", **config), Watcher())
