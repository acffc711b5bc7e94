"""``assay eval`` with OpenAI-compatible servers: kills, failures, a secret, and a real server."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.datasets import packaged_file
from assay.models import DEFAULT_WEIGHTS
from assay.types import Benchmark
from tests.conftest import Cli
from tests.e2e.test_resume import finish, lines, start, wait_for_lines
from tests.models.faulty_server import USAGE, FaultyServer, serving

pytest.importorskip("httpx", reason="the openai engine needs httpx (the openai extra)")

KEY = "sk-never-to-be-seen-0123456789"


@pytest.fixture
def server(mini: Benchmark, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyServer]:
    """One that solves every problem of mini."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def solve(prompt: str) -> str:
        (problem,) = (p for p in mini.problems if f"def {p.tests.entry_point}(" in prompt)
        return f"```python\n{problem.reference}\n```"

    with serving(text=solve) as served:
        yield served


def the_run(folder: Path) -> Path:
    (found,) = (path for path in (folder / "results").iterdir() if path.is_dir())
    return found


@pytest.mark.slow
def test_kill_9_and_rerun_repeat_no_more_than_was_in_flight(
    server: FaultyServer, tmp_path: Path
) -> None:
    server.delay_s = 0.1
    asked = ("mini", "--model", "openai:", "--base-url", server.url, "--parallel", "3")
    for made in (3, 10):
        process = start(tmp_path, *asked)
        wait_for_lines(tmp_path, "completions.jsonl", made, process)
        process.kill()
        process.communicate()
    result = finish(tmp_path, *asked)
    assert (result["results"]["completed"], result["results"]["pass_at_1"]) == (20, 1.0)
    assert lines(tmp_path, "completions.jsonl") == 20
    assert len(server.counts) == 20
    assert sum(server.counts.values()) <= 20 + 2 * 3


def test_prompts_that_failed_are_named_and_only_these_are_asked_again(
    server: FaultyServer, assay: Cli, tmp_path: Path
) -> None:
    bad = "def initials("
    server.fault = lambda prompt, _: "400" if bad in prompt else ""
    asked = ("eval", "mini", "--model", "openai:", "--base-url", server.url, "--json")
    first = json.loads(assay(*asked).stdout)
    assert (first["results"]["errors"], first["results"]["completed"]) == (1, 19)
    verdicts = [
        json.loads(line) for line in (the_run(tmp_path) / "verdicts.jsonl").read_text().splitlines()
    ]
    (failed,) = (v for v in verdicts if v["reason"] == "generation-error")
    assert failed["detail"] == "400: fault 400"
    before = sum(server.counts.values())
    server.fault = lambda *_: ""
    second = json.loads(assay(*asked).stdout)
    assert (second["results"]["errors"], second["results"]["completed"]) == (0, 20)
    assert sum(server.counts.values()) == before + 1


def test_tokens_retries_and_cost_are_in_the_result(server: FaultyServer, assay: Cli) -> None:
    server.fault = lambda prompt, before: "500" if "def initials(" in prompt and not before else ""
    asked = ("eval", "mini", "--model", "openai:tiny", "--base-url", server.url)
    priced = assay(*asked, "--price-in", "2", "--price-out", "10")
    assert "cost      0.0009 for 140 tokens in, 60 out" in priced.stdout, priced
    timing = json.loads(assay(*asked, "--price-in", "2", "--price-out", "10", "--json").stdout)[
        "timing"
    ]
    assert timing["prompt_tokens"] == 20 * USAGE["prompt_tokens"]
    assert timing["tokens_generated"] == 20 * USAGE["completion_tokens"]
    assert timing["cost"] == pytest.approx((140 * 2 + 60 * 10) / 1e6)
    assert timing["retries"] == 1
    assert json.loads(assay(*asked, "--json").stdout)["timing"]["cost"] is None


def test_what_a_server_refuses_is_recorded_whenever_it_begins_to(
    server: FaultyServer, assay: Cli, tmp_path: Path
) -> None:
    seen = threading.Semaphore(8)

    def fault(*_: Any) -> str:
        if not seen.acquire(blocking=False):
            server.refuses = ("seed",)
        return ""

    server.fault = fault
    done = assay("eval", "mini", "--model", "openai:", "--base-url", server.url, "--parallel", "2")
    assert done.returncode == 0, done
    assert "left_out ['seed']" in done.stderr
    about = json.loads((the_run(tmp_path) / "run.json").read_text())
    assert [e["engine"].get("left_out") for e in about["environments"]] == [None, ["seed"]]


def test_the_key_is_in_no_file_and_no_message(
    server: FaultyServer, assay: Cli, tmp_path: Path
) -> None:
    server.key = KEY
    server.fault = lambda prompt, _: "400" if "def initials(" in prompt else ""
    asked = ("eval", "mini", "--model", "openai:", "--base-url", server.url)
    told = [assay(*asked, env={"OPENAI_API_KEY": KEY})]
    assert told[0].returncode == 3, told[0]  # one problem has no answer
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    told += [assay(*asked, env={"OPENAI_API_KEY": f"{KEY}-old"}), assay(*asked)]
    for refused in told[1:]:
        assert refused.returncode == 2
        assert refused.stderr.startswith("assay: ")
        assert "OPENAI_API_KEY" in refused.stderr
    assert not [done for done in told if KEY in done.stdout + done.stderr]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 5
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_a_polite_stop_does_not_wait_for_a_server_that_hangs(
    server: FaultyServer, tmp_path: Path
) -> None:
    server.fault = lambda prompt, _: "" if "def initials(" in prompt else "hang"
    process = start(tmp_path, "mini", "--model", "openai:", "--base-url", server.url)
    wait_for_lines(tmp_path, "completions.jsonl", 1, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "run the same command to resume" in err


def test_no_server_and_no_address_are_one_line(assay: Cli) -> None:
    done = assay("eval", "mini", "--model", "openai:", env={"OPENAI_BASE_URL": ""})
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "--base-url" in done.stderr
    done = assay("eval", "mini", "--model", "openai:", "--base-url", "http://127.0.0.1:1/v1")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "Start the server" in done.stderr


LLAMA_CPP = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_parallel, params.n_ctx, params.port, params.verbosity = 2, 4096, 0, 0
server = xllamacpp.Server(params)
print("listening", server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def llama_cpp(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """llama.cpp's own server with the default model, in a process of its own: its address."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    pytest.importorskip("xllamacpp", reason="llama.cpp's server needs xllamacpp (the gguf extra)")
    weights = packaged_file(DEFAULT_WEIGHTS, lambda _: None)
    process = subprocess.Popen(
        [sys.executable, "-c", LLAMA_CPP, str(weights)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = next(line for line in process.stdout if line.startswith("listening "))
        yield f"{address.split()[1]}/v1"
    finally:
        process.kill()
        process.communicate()


@pytest.mark.model
@pytest.mark.slow
def test_a_real_server(llama_cpp: str, assay: Cli, tmp_path: Path) -> None:
    asked = ("eval", "mini", "--model", "openai:", "--base-url", llama_cpp, "--logprobs")
    done = assay(*asked, "--samples", "3", "--max-tokens", "32", "--parallel", "2", "--json")
    assert done.returncode == 0, done
    result = json.loads(done.stdout)
    assert result["results"]["completed"] == 3
    assert result["model_identity"]["engine"] == "openai"
    assert "left_out" not in result["environment"]["engine"]
    assert result["timing"]["retries"] == 0
    completions = [
        json.loads(line)
        for line in (the_run(tmp_path) / "completions.jsonl").read_text().splitlines()
    ]
    for made in completions:
        assert made["error"] is None
        assert made["text"].strip()
        assert 0 < made["tokens_generated"] <= 32
        assert made["prompt_tokens"] > 20
        assert made["logprob"] < 0
    again = json.loads(assay(*asked, "--samples", "3", "--max-tokens", "32", "--json").stdout)
    assert again["run"] == result["run"]
    text = assay(*asked, "--samples", "1", "--max-tokens", "32", "--prompt-form", "text", "--json")
    assert json.loads(text.stdout)["results"]["completed"] == 1, text
