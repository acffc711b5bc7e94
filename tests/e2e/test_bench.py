"""``assay bench`` on real engines, a server, and with what it must refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.models import DEFAULT_WEIGHTS
from tests.conftest import Cli, write_completions
from tests.models.faulty_server import USAGE, serving

SPREAD = {"median", "min", "max", "q1", "q3"}


def check_shape(result: dict[str, Any], *, batches: list[int], rounds: int) -> None:
    """All that holds whatever the engine."""
    figures = result["figures"]
    first = figures["time_to_first_token_ms"]
    assert set(first) == SPREAD
    assert result["time_to_first_token_ms"] == first["median"] > 0
    assert result["settings"]["batches"] == batches
    assert [batch["sequences"] for batch in figures["batches"]] == batches
    assert len(result["rounds"]) == rounds
    for one in result["rounds"]:
        assert one["first_token"]["sequences"] == one["alone"]["sequences"] == 1
        assert [batch["sequences"] for batch in one["batches"]] == batches
        assert all(batch["seconds"] > 0 for batch in one["batches"])
    for number, batch in enumerate(figures["batches"]):
        rates = batch["tokens_per_second"]
        assert 0 < rates["min"] <= rates["median"] <= rates["max"]
        made = sum(one["batches"][number]["tokens_generated"] for one in result["rounds"])
        assert batch["tokens_generated"] == made > 0
    assert {"python", "platform", "cpu", "cpus", "memory_mb"} <= result["machine"].keys()
    assert len(result["model_identity"]["weights_sha256"]) == 64


def check_local(result: dict[str, Any], prompt_tokens: int) -> None:
    """What an engine in a process of its own tells besides."""
    assert result["used_gpu"] is False
    decoding = result["figures"]["decode_tokens_per_second"]
    assert result["tokens_per_second"] == decoding["median"] > 0
    assert result["prefill_tokens_per_second"] > 0
    assert result["load_s"] > 0
    assert result["loading"] == "kept"
    assert result["peak_memory_mb"] > 20
    assert result["gpu_peak_memory_mb"] is None
    assert result["settings"]["prompt_form"] == "text"
    for one in result["rounds"]:
        assert prompt_tokens - 12 <= one["first_token"]["prompt_tokens"] <= prompt_tokens
        assert one["first_token"]["tokens_generated"] == 1


@pytest.mark.model
@pytest.mark.slow
def test_the_default_model(assay: Cli, tmp_path: Path) -> None:
    asked = ("--prompt-tokens", "24", "--new-tokens", "16", "--batch", "1,3", "--rounds", "2")
    output = tmp_path / "deep" / "throughput.json"
    plot = ("--plot", "speed.svg")
    done = assay("bench", "default", *asked, "--device", "cpu", "--json", "--output", output, *plot)
    assert done.returncode == 0, done.stderr
    assert "tokens per second by number of sequences" in (tmp_path / "speed.svg").read_text()
    result = json.loads(done.stdout)
    assert json.loads(output.read_text()) == result
    assert [path.name for path in output.parent.iterdir()] == [output.name]
    check_shape(result, batches=[1, 3], rounds=2)
    check_local(result, prompt_tokens=24)
    assert result["model_identity"]["weights_sha256"] == DEFAULT_WEIGHTS.sha256
    assert (result["engine"]["device"], result["engine"]["parallel"]) == ("cpu", 3)
    assert result["figures"]["batches"][1]["tokens_generated"] <= 2 * 3 * 16


@pytest.mark.torch
@pytest.mark.slow
def test_a_folder_and_what_a_person_sees(assay: Cli, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the hf extra: pip install 'assay-eval[hf]'")
    pytest.importorskip("transformers", reason="needs the hf extra: pip install 'assay-eval[hf]'")
    from tests.models.torch_models import save_model

    folder = save_model(tmp_path / "small")
    output = tmp_path / "throughput.json"
    asked = ("--prompt-tokens", "60", "--new-tokens", "20", "--batch", "4,1", "--rounds", "3")
    done = assay("bench", folder, *asked, "--device", "cpu", "--output", output)
    assert done.returncode == 0, done.stderr
    # Nothing but progress, which appears where it takes long.
    assert all(line.startswith("small") for line in done.stderr.splitlines())
    result = json.loads(output.read_text())
    check_shape(result, batches=[4, 1], rounds=3)
    check_local(result, prompt_tokens=60)
    assert result["engine"]["parallel"] == 4
    lines = done.stdout.splitlines()
    assert lines[0].startswith("small 95K · hf · cpu · ")
    names = [line.split()[0] for line in lines[1:]]
    assert names == ["load", "first", "prefill", "decoding", "memory", "batch", "4", "1"]
    made = result["figures"]["batches"][0]["tokens_generated"]
    assert lines[-2].split()[-2:] == [str(made), str(3 * 4 * 20)]


@pytest.mark.slow
def test_a_server(assay: Cli) -> None:
    pytest.importorskip("httpx", reason="the openai engine needs httpx (the openai extra)")
    asked = ("--prompt-tokens", "40", "--new-tokens", "16", "--batch", "1,2", "--rounds", "2")
    with serving(delay_s=0.02) as server:
        given = ("openai:tiny", "--base-url", server.url, *asked, "--json")
        result, again = (json.loads(assay("bench", *given).stdout) for _ in range(2))
        sent = [body["messages"][-1]["content"] for body in server.bodies]
    check_shape(result, batches=[1, 2], rounds=2)
    assert (result["loading"], result["load_s"]) == ("elsewhere", None)
    assert result["peak_memory_mb"] is None
    assert result["settings"]["prompt_form"] == "chat"
    assert result["rounds"][0]["first_token"]["prompt_tokens"] == USAGE["prompt_tokens"]
    assert result["time_to_first_token_ms"] >= 20
    # It may keep what it was sent, so it is sent nothing twice.
    assert len(set(sent)) == len(sent) == 2 * (2 + 3 * (2 + 1 + 2))
    assert result["settings"]["seed"] != again["settings"]["seed"]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (("nowhere.gguf",), "nowhere.gguf: is not a file or folder"),
        (("default", "--batch", "1,two"), "--batch: '1,two' is not a list of numbers"),
        (("default", "--batch", ""), "Give numbers such as 1,2,4."),
        (("default", "--batch", "0"), "--batch: 0 is out of range. Give 1 to 4096"),
        (("default", "--batch", "2,2"), "not a list of different batch sizes"),
        (("default", "--batch-mode", "off"), "Give --batch 1"),
        (("default", "--rounds", "0"), "--rounds: 0 is out of range. Give 1 to 1000"),
        (("default", "--prompt-tokens", "0"), "--prompt-tokens: 0 is out of range. Give 1 to"),
        (("default", "--new-tokens", "1"), "--new-tokens: 1 is out of range. Give 2 to"),
        (("default", "--output", "/proc/none/here.json"), "Choose another --output"),
        (("default", "--output", "."), "is a directory"),
    ],
)
def test_what_cannot_be_measured_is_said_in_one_line(
    assay: Cli, asked: tuple[str, ...], why: str
) -> None:
    done = assay("bench", *asked)
    assert done.returncode == 2
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_recorded_completions_have_no_speed(assay: Cli, tmp_path: Path) -> None:
    path = write_completions(tmp_path / "made.jsonl", [("t", "x = 1")])
    done = assay("bench", path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the replay engine computes nothing, so it has no speed" in done.stderr
