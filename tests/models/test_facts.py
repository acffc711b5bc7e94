"""The JSON of what each engine reports for a result: names, values and their order."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest

from assay.models import EngineOptions, Model, open_model
from assay.models.model import EngineFacts
from assay.models.scoring import open_scorer
from assay.types import Decoding, Message, Prompt, Request
from tests.models.faulty_server import FaultyServer
from tests.models.openai_requests import ask, opened
from tests.models.small_models import write_small

CHAT = Prompt(messages=(Message("user", "hello"),))
THINKS = "{% for m in messages %}[{{ m['content'] }}]{% endfor %}<think>\n"


def told(facts: EngineFacts) -> list[tuple[str, Any]]:
    """Return the facts as a results file has them, in order."""
    return list(json.loads(json.dumps(facts.to_json())).items())


def version(package: str) -> str:
    return importlib.metadata.version(package)


def generate(model: Model) -> None:
    (made,) = model.generate([Request("t", 0, CHAT, Decoding(max_tokens=2), 0)])
    assert made.error is None


def test_llama_cpp(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="needs the gguf extra")
    path = write_small(tmp_path / "small.gguf", chat_template=THINKS)
    own = ('cache_type_k="q8_0"', "n_batch=64")
    options = EngineOptions(parallel=2, threads=1, device="cpu", engine_options=own)
    model = open_model(str(path), options)
    assert told(model.describe()) == [("xllamacpp", version("xllamacpp")), ("thinks", True)]
    generate(model)
    assert told(model.describe()) == [
        ("xllamacpp", version("xllamacpp")), ("device", "cpu"), ("parallel", 2),
        ("batch_invariant", False), ("threads", 1),
        ("engine_options", {"cache_type_k": "q8_0", "n_batch": 64}), ("thinks", True),
    ]  # fmt: skip
    plain = open_model(str(write_small(tmp_path / "plain.gguf")), EngineOptions(threads=1))
    with open_scorer(plain) as scorer:
        assert told(scorer.facts) == [("device", "cpu"), ("threads", 1)]


@pytest.mark.torch
def test_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs the hf extra")
    transformers = pytest.importorskip("transformers", reason="needs the hf extra")
    path = write_small(tmp_path / "small.gguf", chat_template=THINKS)
    model = open_model(f"hf:{path}", EngineOptions(parallel=2, threads=1, device="cpu"))
    assert told(model.describe()) == [("thinks", True)]
    loaded = [
        ("transformers", transformers.__version__), ("torch", torch.__version__),
        ("device", "cpu"), ("dtype", "float32"), ("threads", 1),
    ]  # fmt: skip
    with model.keep_loaded():
        with open_scorer(model) as scorer:
            assert told(scorer.facts) == loaded
        generate(model)
        with open_scorer(model) as scorer:
            assert told(scorer.facts) == loaded
    assert told(model.describe()) == [
        *loaded, ("parallel", 2), ("batch_invariant", True), ("thinks", True),
    ]  # fmt: skip


@pytest.mark.usefixtures("quick_retries")
def test_servers(server: FaultyServer) -> None:
    pytest.importorskip("httpx", reason="the openai engine needs httpx (the openai extra)")
    known = [
        ("httpx", version("httpx")), ("base_url", server.url), ("parallel", 3),
        ("batch_invariant", False),
    ]  # fmt: skip
    assert told(opened(server, parallel=3).describe()) == known
    server.refuses = ("seed", "min_p")
    model = opened(server, "other", parallel=3, logprobs=True)
    list(model.generate(ask(1, Decoding(16, temperature=0.8, top_k=40))))
    assert told(model.describe()) == [
        *known, ("listed_by_server", False), ("left_out", ["min_p", "seed"]),
        ("logprobs", "not reported by the server"),
    ]  # fmt: skip


def test_recordings(tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    path.write_text('{"task_id": "t", "solution": "x = 1"}\n')
    model = open_model(str(path))
    generate(model)
    assert told(model.describe()) == []
