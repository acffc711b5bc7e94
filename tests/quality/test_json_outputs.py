"""The keys of what the commands print with ``--json``, as scripts read them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from assay.types import ModelIdentity
from tests.conftest import Cli
from tests.models.faulty_server import serving
from tests.models.small_models import write_small
from tests.models.torch_models import save_model

SPREAD = ["median", "min", "max", "q1", "q3"]
TIMED = ["sequences", "seconds", "prompt_tokens", "tokens_generated", "ended_early"]
IDENTITY = [field.name for field in dataclasses.fields(ModelIdentity)]
PERPLEXITY = [
    "cross_entropy", "perplexity", "bits_per_byte", "standard_error", "low", "high", "tokens",
    "bytes", "window", "stride",
]  # fmt: skip
BENCH = [
    "schema", "model", "timestamp", "tokens_per_second", "time_to_first_token_ms",
    "prefill_tokens_per_second", "load_s", "used_gpu", "peak_memory_mb", "gpu_peak_memory_mb",
    "figures", "rounds", "settings", "loading", "model_identity", "engine", "machine",
]  # fmt: skip
PARITY = [
    "prompts", "token_differences", "agreement", "kl_by_position", "divergence",
    "candidate_perplexity", "reference_perplexity", "perplexity_gap", "findings", "decision",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers", reason="needs the hf extra")
    return save_model(tmp_path_factory.mktemp("shapes") / "model")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("shapes") / "small.gguf")


def check_bench(told: dict[str, Any]) -> None:
    assert list(told) == BENCH
    assert told["schema"] == 1
    assert list(told["figures"]) == [
        "time_to_first_token_ms", "prefill_tokens_per_second", "decode_tokens_per_second",
        "batches",
    ]  # fmt: skip
    assert list(told["figures"]["time_to_first_token_ms"]) == SPREAD
    assert list(told["figures"]["batches"][0]) == [
        "sequences", "tokens_per_second", "seconds", "tokens_generated", "ended_early",
    ]  # fmt: skip
    (one, *_) = told["rounds"]
    assert list(one) == ["first_token", "alone", "batches"]
    assert list(one["alone"]) == list(one["batches"][0]) == TIMED
    assert list(told["settings"]) == [
        "prompt_tokens", "new_tokens", "batches", "rounds", "seed", "prompt_form", "temperature",
    ]  # fmt: skip
    assert list(told["model_identity"]) == IDENTITY
    assert list(told["machine"]) == [
        "assay", "python", "platform", "machine", "cpu", "cpus", "memory_mb",
    ]  # fmt: skip
    seconds = one["alone"]["seconds"]
    assert seconds == round(seconds, 6)


def test_bench(assay: Cli) -> None:
    pytest.importorskip("httpx", reason="the openai engine needs httpx (the openai extra)")
    with serving() as server:
        given = ("openai:tiny", "--base-url", server.url, "--new-tokens", "4", "--rounds", "1")
        told = json.loads(assay("bench", *given, "--batch", "1,2", "--json").stdout)
    check_bench(told)
    assert isinstance(told["engine"], dict)


@pytest.mark.torch
@pytest.mark.slow
def test_qa(assay: Cli, folder: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "tiers:\n  mine: {check: true, perplexity_max: 9000, text: built-in, text_bytes: 2000, "
        "tokens_per_second_min: 0.01, parity: true}\n"
    )
    told = json.loads(assay("qa", folder, "--tier", "mine", "--policy", policy, "--json").stdout)
    assert list(told) == [
        "decision", "tier", "model", "items", "sha256", "timestamp", "assay", "platform", "python",
    ]  # fmt: skip
    assert list(told["model"]) == IDENTITY
    assert all(list(item) == ["name", "decision", "reason", "figures"] for item in told["items"])
    figures = {item["name"]: item["figures"] for item in told["items"]}
    assert list(figures) == ["check", "perplexity", "throughput", "parity"]
    assert figures["check"]["container"].startswith("pass: a Hugging Face folder")
    assert list(figures["perplexity"]) == PERPLEXITY
    check_bench(figures["throughput"])
    assert list(figures["parity"]) == PARITY
    assert {"policy", "text built-in", "reference weights"} == set(told["sha256"])


def test_qa_without_a_result(assay: Cli, small: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("tiers:\n  mine: {scores: {mini: {pass_at_1: 0}}}\n")
    told = json.loads(assay("qa", small, "--tier", "mine", "--policy", policy, "--json").stdout)
    assert [item["figures"] for item in told["items"]] == [{}]


def test_perplexity(assay: Cli, small: Path) -> None:
    pytest.importorskip("xllamacpp", reason="needs the gguf extra")
    asked = ("perplexity", small, "--dataset", "built-in", "--bytes", "1000", "--json")
    told = json.loads(assay(*asked).stdout)
    assert list(told) == ["model", "dataset", "results", "engine", "used_gpu", "seconds"]
    assert list(told["dataset"]) == ["name", "sha256", "bytes"]
    assert list(told["results"]) == PERPLEXITY


@pytest.mark.torch
def test_compare_hf(assay: Cli, folder: Path) -> None:
    told = json.loads(assay("compare-hf", folder, "--prompts", "1", "--json").stdout)
    assert list(told) == ["model", "reference", "precision", *PARITY]
    assert list(told["findings"][0]) == ["name", "value", "bound", "decision"]
    assert list(told["agreement"]) == [
        "positions", "cosine_mean", "cosine_min", "max_abs_difference", "top1_agreement",
        "kl_mean", "kl_max",
    ]  # fmt: skip


def test_check(assay: Cli, small: Path) -> None:
    told = json.loads(assay("check", small, "--no-run", "--json").stdout)
    assert list(told) == ["model", "sound", "stages"]
    assert list(told["stages"][0]) == ["name", "status", "reason"]
