"""How many threads an engine computes with, and that they do not spin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from assay.data import codec
from assay.errors import UsageError
from assay.models import EngineOptions, open_model
from assay.models.engines.llamacpp.gguf_model import LlamaSettings
from assay.models.engines.torch.torch_model import TorchSettings
from assay.models.engines.vllm import vllm_worker
from assay.models.workers.process import make_environment
from assay.types import Decoding, Message, Prompt, Request
from assay.work.machine import usable_cores, usable_physical_cores

ON_CPU = EngineOptions(device="cpu", threads=1)
SETTINGS = {
    "llamacpp.llama_worker": LlamaSettings("/nonexistent", ON_CPU, "", 64, 64),
    "llamacpp.native": LlamaSettings("/nonexistent", ON_CPU, "", 64),
    "torch.torch_worker": TorchSettings(
        "/nonexistent", EngineOptions(device="cpu", dtype="float32")
    ),
}


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(module, marks=pytest.mark.torch if module.startswith("torch") else ())
        for module in SETTINGS
    ],
)
def test_threads_of_an_engine_do_not_spin(tmp_path: Path, module: str) -> None:
    """OpenMP's threads spin for 300,000 rounds: beside other work a run takes six times as long."""
    library = "torch" if module.startswith("torch") else "xllamacpp"
    pytest.importorskip(library, reason=f"needs {library} (the gguf or hf extra)")
    log = tmp_path / "log"
    with log.open("w") as errors:
        worker = subprocess.Popen(
            [sys.executable, "-m", f"assay.models.engines.{module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=make_environment({"OMP_DISPLAY_ENV": "verbose"}),
            text=True,
        )
    assert worker.stdin is not None
    assert worker.stdout is not None
    with worker, worker.stdin, worker.stdout:  # its input stays open: its end would end the worker
        worker.stdin.write(codec.dumps(SETTINGS[module]) + "\n")
        worker.stdin.flush()
        assert "Fatal" in worker.stdout.readline()
    if "GOMP_SPINCOUNT" not in log.read_text():
        pytest.skip(f"{library} computes without GNU OpenMP")
    assert "GOMP_SPINCOUNT = '0'" in log.read_text()


@pytest.mark.slow
@pytest.mark.model
def test_texts_do_not_depend_on_the_number_of_threads() -> None:
    """So that the number belongs to the environment and not to the protocol."""
    prompt = Prompt(messages=(Message("user", "Write a function that adds two numbers."),))
    requests = [Request("t", n, prompt, Decoding(max_tokens=16), n) for n in range(2)]
    texts, threads = [], []
    for count in (1, 3, 0):
        model = open_model("default", EngineOptions(threads=count))
        texts.append({completion.text for completion in model.generate(requests)})
        threads.append(model.describe().to_json()["threads"])
    assert texts[0] == texts[1] == texts[2]
    assert threads == [1, 3, usable_physical_cores()]


@pytest.mark.parametrize(("threads", "expected"), [(0, usable_cores()), (3, 3)])
def test_threads_of_vllm(monkeypatch: pytest.MonkeyPatch, threads: int, expected: int) -> None:
    monkeypatch.setattr(os, "environ", {})
    vllm_worker._prepare_environment("cpu", threads)
    assert os.environ["OMP_NUM_THREADS"] == str(expected)
    assert ("VLLM_CPU_OMP_THREADS_BIND" in os.environ) == bool(threads)


def test_a_server_sets_its_own_threads() -> None:
    with pytest.raises(UsageError, match="--threads: the openai engine has no such setting"):
        open_model("openai:x", EngineOptions(base_url="http://127.0.0.1:9", threads=2))


@pytest.mark.parametrize("threads", [-1, 513, 1 << 70])
def test_wrong_numbers_of_threads(threads: int) -> None:
    with pytest.raises(UsageError, match=r"^--threads .*: must be 0 \(automatic\) to 512"):
        EngineOptions(threads=threads)
