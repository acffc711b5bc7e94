"""A model is asked, and loaded, only for texts that no run has."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from assay.errors import ModelError
from assay.models import Model
from assay.pipeline import EvalConfig, evaluate
from assay.pipeline.plan import plan_evaluation
from assay.pipeline.problems import SelectedProblems
from assay.pipeline.run import execute, find_missing
from assay.progress import Silent
from assay.sandbox import open_sandbox
from assay.types import Benchmark, Decoding, ModelIdentity
from tests.pipeline.test_pipeline import ScriptedModel, install


class IdentifiedModel(ScriptedModel):
    """A model whose texts are stored, because its weights have a digest."""

    identity = ModelIdentity("scripted", "test", "ab" * 32, "chat")

    def gpu(self) -> str:
        return ""


@pytest.mark.parametrize("broken_first", [True, False])
def test_an_unscorable_reference_costs_no_text(
    monkeypatch: pytest.MonkeyPatch, mini: Benchmark, tmp_path: Path, broken_first: bool
) -> None:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path / "cache"))
    first, *others = mini.problems
    wrong = replace(first, reference=f"def {first.tests.entry_point}(*_): return object()\n")
    unscorable = replace(mini, problems=(wrong, *others), name="mini-plus", data_sha256="0" * 64)
    model = IdentifiedModel(mini)
    written: set[str] = set()
    results = []
    for benchmark in (unscorable, mini) if broken_first else (mini, unscorable):
        selected = SelectedProblems(benchmark, "", len(benchmark.problems))
        config = EvalConfig("mini", tmp_path / "results", workers=1)
        plan = plan_evaluation(config, cast(Model, model), selected)
        results.append(execute(replace(plan, store=plan.open_store(written)), Silent()))
    count = len(mini.problems)
    assert len(model.asked) == count
    assert [result.timing.reused for result in results] == [0, count]
    assert sorted(len(result.results.unscorable) for result in results) == [0, 1]
    assert all(result.coverage and result.coverage.samples == count for result in results)


class LoadingModel(ScriptedModel):
    """A model whose engine can load in advance."""

    loads = 0

    def preload(self, _: Decoding) -> None:
        self.loads += 1

    @contextlib.contextmanager
    def keep_loaded(self) -> Iterator[str]:
        yield "kept"


def test_a_model_is_loaded_only_if_its_run_lacks_completions(
    monkeypatch: pytest.MonkeyPatch, mini: Benchmark, tmp_path: Path
) -> None:
    config = EvalConfig("mini", tmp_path, workers=1, no_cache=True)
    broken, second = LoadingModel(mini, break_after=7), LoadingModel(mini)
    install(monkeypatch, broken)
    with pytest.raises(ModelError, match="the engine is gone"):
        evaluate(config, Silent())
    assert broken.loads == 1
    install(monkeypatch, second)
    evaluate(config, Silent())
    assert (second.loads, len(second.asked)) == (1, 13)
    for path in tmp_path.glob("*.json"):
        path.unlink()  # the folder alone knows what is missing
    evaluate(config, Silent())
    assert (second.loads, len(second.asked)) == (1, 13)


def test_what_a_run_lacks_is_known_before_it_is_opened(
    monkeypatch: pytest.MonkeyPatch, mini: Benchmark, tmp_path: Path
) -> None:
    """A suite asks this about its next evaluation while the last one is judged."""
    config = EvalConfig("mini", tmp_path, workers=1, no_cache=True)
    selected = SelectedProblems(mini, "", len(mini.problems))
    plan = plan_evaluation(config, cast(Model, LoadingModel(mini)), selected)
    with contextlib.closing(open_sandbox("process", 1)) as sandbox:
        capabilities = sandbox.capabilities()
    assert find_missing(plan, capabilities) == plan.keys
    install(monkeypatch, LoadingModel(mini, break_after=7))
    with pytest.raises(ModelError):
        evaluate(config, Silent())
    assert len(find_missing(plan, capabilities)) == 13
    fresh = replace(plan, config=replace(config, fresh=True))
    assert find_missing(fresh, capabilities) == plan.keys
    assert plan.needs_model(plan.keys)
    assert not plan.needs_model([])
