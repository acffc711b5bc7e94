"""Options that change what a model is sent: their meaning and their limits."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay import models
from assay.errors import UsageError
from assay.models import EngineOptions, devices
from assay.pipeline import EvalConfig, ProblemSelection, Sampling, evaluate
from assay.pipeline.prompting import complete_prompt, resolve_prompt_settings
from assay.protocol import PromptSettings
from assay.runs import render_result
from assay.types import Benchmark, Decoding, Message, ModelIdentity, Prompt, PromptForm
from tests.conftest import references, write_completions
from tests.pipeline.test_pipeline import ScriptedModel, Watcher


def test_a_prompt_gets_one_system_message_and_each_stop_word_once() -> None:
    asking = resolve_prompt_settings("chat", EngineOptions(), "Be brief.", ("b", "a", "b", "own"))
    said = Message("user", "hi")
    found = complete_prompt(Prompt((said,), stop=("own",)), asking)
    assert found == Prompt((Message("system", "Be brief."), said), stop=("own", "a", "b"))
    assert complete_prompt(found, asking) == found
    assert complete_prompt(Prompt(text="x"), replace(asking, stop=())) == Prompt(text="x")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"temperature": 1.0, "top_p": 0.0}, "--top-p 0.0: must be above 0 and at most 1"),
        ({"temperature": 1.0, "top_p": 1.1}, "--top-p .*: must be"),
        ({"temperature": 1.0, "top_p": float("nan")}, "--top-p .*: must be"),
        ({"temperature": 1.0, "min_p": 1.0}, "--min-p .*: must be 0 or more and less than 1"),
        ({"temperature": 1.0, "min_p": -0.1}, "--min-p .*: must be"),
        ({"repetition_penalty": 0.0}, "--repetition-penalty .*: must be a finite number above 0"),
        ({"repetition_penalty": float("inf")}, "--repetition-penalty .*: must be"),
        ({"top_p": 0.9}, "--top-p: has no effect at temperature 0"),
        ({"min_p": 0.1}, "--min-p: has no effect at temperature 0"),
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
        (
            {"thinking": "maybe"},
            "--thinking 'maybe': is not valid. Use on, off or a number of tokens",
        ),
        ({"thinking": "0"}, "is not valid. Use on, off or a number"),
        ({"thinking": "-1"}, "is not valid. Use on, off or a number"),
        ({"thinking": "012"}, "is not valid. Use on, off or a number"),
        ({"thinking": "9" * 5000}, "is not valid. Use on, off or a number"),
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
        (("\ud800", ()), "--system: not UTF-8"),
    ],
)
def test_texts_that_cannot_be_sent_are_refused(
    texts: tuple[str, tuple[str, ...]], problem: str, tmp_path: Path
) -> None:
    system, stop = texts
    with pytest.raises(UsageError, match=problem):
        evaluate(EvalConfig("mini", tmp_path, system=system, stop=stop), Watcher())


def test_a_base_model_has_no_system_message() -> None:
    with pytest.raises(UsageError, match="--system: the prompt form is text"):
        resolve_prompt_settings("text", EngineOptions(), "Be brief.", ())


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


def test_a_result_says_how_its_model_was_asked(
    mini: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "open_model", lambda *_: ScriptedModel(mini))
    sampling = Sampling(temperature=0.8, top_p=0.9, min_p=0.1, seed=3)
    config = EvalConfig(
        "mini", tmp_path, sampling=sampling, problems=ProblemSelection("1"), stop=("END",),
        system="Be brief.", engine=EngineOptions(thinking="off", engine_options=("a=1",)),
    )  # fmt: skip
    found = render_result(evaluate(config, Watcher()))
    for part, kind in (("asking", PromptSettings), ("decoding", Decoding)):
        for field in dataclasses.fields(kind):
            assert found["config"][field.name] == found["protocol"][part][field.name]


class Listener(Watcher):
    """Keeps the notes."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.mark.parametrize(
    ("form", "template", "told"),
    [
        ("chat", "t", "prompt form chat: the model's own chat template is used"),
        ("text", "t", "prompt form text: the model's chat template is not used"),
        ("text", "", "prompt form text: the model has no chat template, so it is used as a base "
         "model"),
    ],
)  # fmt: skip
def test_the_prompt_form_is_said_and_recorded(
    mini: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    form: PromptForm, template: str, told: str,
) -> None:  # fmt: skip
    """A folder that lost its chat template must not be used as a base model without a word."""
    model = ScriptedModel(mini)
    model.identity = ModelIdentity("m", "test", "w", form, template_sha256=template)
    monkeypatch.setattr(models, "open_model", lambda *_: model)
    listener = Listener()
    config = EvalConfig("mini", tmp_path, problems=ProblemSelection("1"))
    asking = evaluate(config, listener).protocol.asking
    assert asking is not None
    assert told in listener.notes
    own = "own" if form == "chat" else "none"
    assert (asking.prompt_form, asking.chat_template) == (form, own)


def test_a_run_without_a_gpu_is_not_finished_as_one_with_it(
    mini: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--device cuda`` must not return a finished result of a CPU."""
    monkeypatch.setattr(models, "open_model", lambda *_: ScriptedModel(mini))
    config = EvalConfig("mini", tmp_path, problems=ProblemSelection("1"))
    evaluate(config, Watcher())
    with pytest.raises(UsageError, match="has completions that were generated without a GPU"):
        evaluate(replace(config, engine=EngineOptions(device="cuda")), Watcher())


def test_a_gpu_that_is_not_there_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "driver_gpu", lambda: "")
    config = EvalConfig("mini", tmp_path, engine=EngineOptions(device="cuda"))
    with pytest.raises(UsageError, match="--device cuda: this machine has no NVIDIA GPU"):
        evaluate(config, Watcher())


@pytest.mark.parametrize(
    ("given", "samples", "decoding", "says"),
    [
        (Sampling(), 1, (0.0, 1), ""),
        (Sampling(20), 20, (0.8, 40), "drawn at temperature 0.8, top-k 40"),
        (Sampling(20, top_k=5), 20, (0.8, 5), "drawn at temperature 0.8, top-k 5"),
        (Sampling(20, 0.0), 1, (0.0, 1), "1 sample is generated instead of 20, and only pass@1"),
        (Sampling(1, 0.0), 1, (0.0, 1), ""),
        (Sampling(20, 0.2), 20, (0.2, 40), ""),
    ],
)
def test_several_samples_are_never_copies_of_one_greedy_text(
    given: Sampling, samples: int, decoding: tuple[float, int], says: str
) -> None:
    """With greedy decoding, ``NUM_SAMPLES=20`` would give 20 equal texts and a wrong pass@10."""
    found, note = given.decide()
    settled = found.settle()
    assert (found.n_samples, (settled.temperature, settled.top_k)) == (samples, decoding)
    assert given.settle() == settled
    assert says in note
    assert bool(note) == bool(says)
