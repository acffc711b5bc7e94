"""How often a command loads a model: once for all that it asks of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the hf extra: pip install 'assay-eval[hf]'")
pytest.importorskip("transformers", reason="needs the hf extra: pip install 'assay-eval[hf]'")

from assay.models import EngineOptions, open_model, parse_reference
from assay.models.engines.torch.torch_model import TorchModel
from assay.models.scoring import Scorer
from assay.models.workers.process import EngineProcess, EngineWorker
from assay.quality.parity import compare
from assay.quality.parity_gate import run_parity_gate
from assay.quality.policy import load_policy
from assay.quality.qa import Subject, examine
from assay.types import Decoding, Prompt, Request
from tests.models.small_models import write_small
from tests.models.torch_models import save_model

pytestmark = pytest.mark.torch

CPU = EngineOptions(device="cpu")
LIKENESS, TEXT = load_policy().parity["same"], "some text to read\n" * 20
POLICY = """tiers:
  mine: {check: true, perplexity_max: 9000, text: built-in, text_bytes: 2000,
         tokens_per_second_min: 0.01, parity: true}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("loads") / "model")


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Processes of engines that were started, by the name of their model's file."""
    found: Counter[str] = Counter()
    start = EngineProcess.__init__

    def count(self: EngineProcess[Any], worker: EngineWorker[Any]) -> None:
        found[f"{worker.engine} {Path(worker.model).name}"] += 1
        start(self, worker)

    monkeypatch.setattr(EngineProcess, "__init__", count)
    return found


def test_a_comparison_loads_each_model_once(
    folder: Path, tmp_path: Path, loads: Counter[str]
) -> None:
    other = save_model(tmp_path / "other", seed=3)
    ours, theirs = (open_model(str(path), CPU) for path in (folder, other))
    compare(ours, theirs, LIKENESS, TEXT, count=2)
    assert loads == {"transformers model": 1, "transformers other": 1}


@pytest.mark.slow
def test_llama_cpp_generates_and_scores_with_one_load_each(
    tmp_path: Path, loads: Counter[str]
) -> None:
    """Its server does not give its model away, so that logits need a second load."""
    pytest.importorskip("xllamacpp", reason="needs the gguf extra")
    path = write_small(tmp_path / "small.gguf")
    ours, theirs = (open_model(f"{engine}:{path}", CPU) for engine in ("gguf", "hf"))
    compare(ours, theirs, LIKENESS, TEXT, count=2)
    assert loads == {"llama.cpp small.gguf": 2, "transformers small.gguf": 1}


def test_a_release_check_loads_each_model_once(
    folder: Path, tmp_path: Path, loads: Counter[str]
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    subject = Subject(parse_reference(str(folder)), CPU, tmp_path)
    items = examine(subject, load_policy(policy), "mine").items
    assert [item.name for item in items] == ["check", "perplexity", "throughput", "parity"]
    assert {item.decision for item in items} == {"GO"}, items
    # The model, and the same in float32 as its reference.
    assert loads == {"transformers model": 2}


def test_the_parity_gate_and_the_evaluation_share_an_engine(
    folder: Path, tmp_path: Path, loads: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(TorchModel, "gpu", lambda _: "Stand-in, CUDA 0")
    pretended = property(lambda _: True, lambda *_: None)
    monkeypatch.setattr(Scorer, "used_gpu", pretended, raising=False)
    model = open_model(str(folder), CPU)
    found = run_parity_gate(str(folder), CPU, load_policy().gate, model=model)
    assert found.state == "passed"
    request = Request("t", 0, Prompt(text="def f(x):"), Decoding(max_tokens=4), 0)
    (made,) = model.generate([request])
    assert made.error is None
    # The CPU's logits, and the device that then evaluates.
    assert loads == {"transformers model": 2}
    assert model.usage() is None  # it ends with the last request, as ever
    (alone,) = open_model(str(folder), CPU).generate([request])
    assert alone.text == made.text
