"""The default strategy of a benchmark: what is used and recorded unless the user names one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay import benchmarks
from assay.errors import DataError
from assay.pipeline import EvalConfig, ProblemSelection, evaluate, evaluate_all
from assay.prompts import DEFAULT_STRATEGY, find_strategy, list_strategies
from assay.types import Benchmark
from tests.conftest import Cli
from tests.pipeline.test_pipeline import ScriptedModel, install
from tests.pipeline.test_settings import Listener

# Every other benchmark's is `standard`; docs/parity.md has the scores that decided this.
OTHERS = {"cruxeval-i": "upstream-cot", "cruxeval-o": "upstream-cot"}


@pytest.mark.parametrize("name", ["mini", "humaneval", "mbppplus", "bigcodebench-hard", *OTHERS])
def test_the_default_of(name: str) -> None:
    try:
        benchmark = benchmarks.load(name)
    except DataError as error:
        pytest.skip(f"needs the data of {name}: {error}")
    default = OTHERS.get(name, "standard")
    assert find_strategy(DEFAULT_STRATEGY, benchmark).name == default
    assert list_strategies(benchmark)[0] == default


def config(name: str, folder: Path, strategy: str = DEFAULT_STRATEGY) -> EvalConfig:
    problems = ProblemSelection(range="2")
    return EvalConfig(name, folder, workers=1, prompt_strategy=strategy, problems=problems)


def test_the_chosen_strategy_is_printed_and_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    try:
        model = ScriptedModel(benchmarks.load("cruxeval-o"))
    except DataError as error:
        pytest.skip(f"needs the data of cruxeval-o: {error}")
    install(monkeypatch, model)
    listener = Listener()
    result = evaluate(config("cruxeval-o", tmp_path), listener)
    assert "prompt strategy upstream-cot: the default of cruxeval-o" in listener.notes
    assert result.config.prompt_strategy == result.protocol.prompt_strategy == "upstream-cot"
    assert "[THOUGHT]" in model.asked[0].prompt.messages[-1].content
    # The same evaluation by its name: nothing is asked again.
    asked = len(model.asked)
    again = evaluate(config("cruxeval-o", tmp_path, "upstream-cot"), Listener())
    assert (again.protocol.hash, len(model.asked)) == (result.protocol.hash, asked)


def test_the_standard_strategy_is_not_announced(
    monkeypatch: pytest.MonkeyPatch, mini: Benchmark, tmp_path: Path
) -> None:
    install(monkeypatch, ScriptedModel(mini))
    listener = Listener()
    result = evaluate(config("mini", tmp_path), listener)
    assert result.config.prompt_strategy == "standard"
    assert not any("prompt strategy" in note for note in listener.notes)


def test_all_leaves_out_what_the_model_cannot_be_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The scripted model's engine cannot continue an answer."""
    try:
        humaneval = benchmarks.load("humaneval")
    except DataError as error:
        pytest.skip(f"needs HumanEval: {error}")
    install(monkeypatch, ScriptedModel(humaneval))
    listener = Listener()
    results = evaluate_all(replace(config("humaneval", tmp_path), prompt_strategy="all"), listener)
    names = [result.config.prompt_strategy for result in results]
    assert names == ["standard", "cgo", "few-shot", "scot"]
    (left_out,) = (note for note in listener.notes if "left out" in note)
    assert left_out.startswith("prompt strategy upstream is left out: scripted: the test engine ")


def test_prompt_shows_the_default(assay: Cli) -> None:
    shown = [assay("prompt", "cruxeval-o", "0", *more) for more in ((), ("--strategy", "default"))]
    if shown[0].returncode:
        pytest.skip("needs the data of cruxeval-o")
    assert "[THOUGHT]" in shown[0].stdout
    assert shown[0].stdout == shown[1].stdout
