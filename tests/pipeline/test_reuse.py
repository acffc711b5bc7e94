"""A text is reused whatever became of its verdict in another run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from assay.models import Model
from assay.pipeline import EvalConfig
from assay.pipeline.plan import plan_evaluation
from assay.pipeline.problems import SelectedProblems
from assay.pipeline.run import execute
from assay.progress import Silent
from assay.types import Benchmark, ModelIdentity
from tests.pipeline.test_pipeline import ScriptedModel


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
