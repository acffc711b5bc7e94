"""The parity gate: what it lets pass, what it remembers, what may be published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay import models
from assay.errors import ModelError
from assay.models import EngineOptions
from assay.models.devices import driver_gpu
from assay.models.engines.torch.torch_model import TorchModel
from assay.models.scoring import Scorer
from assay.quality import parity_gate as gate
from assay.quality.parity_gate import run_parity_gate
from assay.quality.policy import load_policy
from assay.runs import Environment, ParityGateOutcome
from assay.runs.marks import with_publication
from assay.types import Benchmark, Completion
from tests.conftest import Cli, references, write_completions
from tests.models.torch_models import save_model
from tests.report.leaderboards import make_result

LIKENESS = load_policy().gate
ON_GPU = EngineOptions(device="cuda")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers", reason="needs the hf extra")
    return save_model(tmp_path_factory.mktemp("gate") / "model")


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The CPU, under a GPU's name: all of the gate but the other device."""
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(TorchModel, "gpu", lambda _: "Stand-in, CUDA 0")
    pretended = property(lambda _: True, lambda *_: None)
    monkeypatch.setattr(Scorer, "used_gpu", pretended, raising=False)


@pytest.mark.torch
def test_without_a_gpu_there_is_nothing_to_compare(folder: Path) -> None:
    assert run_parity_gate(str(folder), EngineOptions(device="cpu"), LIKENESS).state == "no-gpu"


@pytest.mark.torch
@pytest.mark.usefixtures("stand_in")
def test_a_pass_is_remembered_for_these_weights_and_versions(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = EngineOptions(device="cpu")
    first = run_parity_gate(str(folder), options, LIKENESS)
    assert (first.state, first.cached, first.device) == ("passed", False, "Stand-in, CUDA 0")
    assert first.agreement is not None
    assert first.agreement.cosine_min == pytest.approx(1.0)
    asked = []

    def compared(*arguments: object, **_: object) -> ParityGateOutcome:
        asked.append(arguments)
        return ParityGateOutcome("failed")

    monkeypatch.setattr(gate, "compare_devices", compared)
    again = run_parity_gate(str(folder), options, LIKENESS)
    assert (again.state, again.cached, again.agreement) == ("passed", True, first.agreement)
    assert asked == []
    other = save_model(tmp_path / "other", seed=7)
    assert run_parity_gate(str(other), options, LIKENESS).state == "failed"
    monkeypatch.setattr(gate, "_version", lambda _: "newer")
    assert run_parity_gate(str(folder), options, LIKENESS).state == "failed"
    monkeypatch.setattr(TorchModel, "gpu", lambda _: "Another, CUDA 0")
    assert run_parity_gate(str(folder), options, LIKENESS).state == "failed"
    assert len(asked) == 3


@pytest.mark.torch
@pytest.mark.usefixtures("stand_in")
def test_a_device_that_computes_something_else_fails_and_is_asked_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = EngineOptions(device="cpu", dtype="float32")  # the CPU's has no data type
    right = models.open_model(str(save_model(tmp_path / "other", seed=7)), options)
    wrong = models.open_model(str(folder), options)
    monkeypatch.setattr(models, "open_model", lambda _, o, *__: wrong if o.dtype else right)
    for _ in range(2):
        found = run_parity_gate(str(folder), options, LIKENESS)
        assert (found.state, found.cached) == ("failed", False)
        assert "mean cosine of logits" in found.reasons[0]
        assert "below 0.999" in found.reasons[0]


@pytest.mark.torch
def test_an_engine_that_does_not_use_the_gpu_is_not_passed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(TorchModel, "gpu", lambda _: "Stand-in, CUDA 0")
    with pytest.raises(ModelError, match="the engine did not use Stand-in"):
        run_parity_gate(str(folder), EngineOptions(device="cpu"), LIKENESS)


def completion(*, used_gpu: bool) -> Completion:
    return Completion("t", 0, "", "stop", 1, 1, 1.0, 0, used_gpu=used_gpu)


@pytest.mark.parametrize(
    ("states", "on_gpu", "publishable"),
    [
        (["passed"], [True, True], True),
        (["passed", "passed"], [True], True),
        (["passed"], [True, False], False),
        (["passed", "off"], [True], False),
        (["no-gpu"], [False], False),
        ([None], [True], False),
    ],
)
def test_all_parts_of_a_run_must_be_publishable(
    states: list[Any], on_gpu: list[bool], publishable: bool
) -> None:
    first, *rest = [
        Environment(parity_gate=ParityGateOutcome(state) if state else None) for state in states
    ]
    made = [completion(used_gpu=used) for used in on_gpu]
    result = make_result("m", environment=first, continued_in=tuple(rest))
    assert with_publication(result, made).publishable is publishable


def test_a_run_without_a_gpu_is_marked_and_not_published(
    assay: Cli, mini: Benchmark, tmp_path: Path
) -> None:
    samples = write_completions(tmp_path / "s.jsonl", references(mini))
    asked = ("eval", "mini", "--model", f"replay:{samples}")
    result = json.loads(assay(*asked, "--json").stdout)
    assert result["publishable"] is False
    assert result["environment"]["parity_gate"]["state"] == "no-gpu"
    assert "not publishable" in assay(*asked).stdout
    for flags, words in (
        (("--publishable",), "--publishable: needs a GPU"),
        (("--publishable", "--no-parity-gate"), "Omit --no-parity-gate"),
    ):
        done = assay(*asked, *flags)
        assert done.returncode == 2
        assert words in done.stderr.splitlines()[-1]


@pytest.mark.torch
@pytest.mark.skipif(not driver_gpu(), reason="needs a GPU")
def test_this_machines_gpu_passes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path))
    found = run_parity_gate(str(folder), ON_GPU, LIKENESS)
    assert found.state == "passed", found
    assert found.agreement is not None
    assert 0.999 < found.agreement.cosine_mean < 1
    assert run_parity_gate(str(folder), ON_GPU, LIKENESS).cached
