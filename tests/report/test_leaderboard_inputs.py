"""What a user gives to a leaderboard: baselines, targets, sizes and speeds."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from assay.datasets.cache import file_sha256
from assay.report.leaderboard import (
    Baseline,
    ModelFacts,
    find_sizes,
    parse_baselines,
    parse_facts,
)
from assay.types import ModelIdentity
from tests.report.measurements import DOCUMENTS, MODEL, SPREAD


def test_baselines_and_targets_by_model() -> None:
    """The form of upstream's suite file; the keys of the suite itself are ignored."""
    content = {
        "name": "coding-benchmarks",
        "targets": {"base": {"humaneval": 0.3, "mbpp": 0.35}},
        "baselines": {
            "Qwen/Qwen2.5-Coder-7B-Instruct": {"humaneval": 0.878, "source": "technical report"},
            "running": {"humaneval": None, "notes": "not finished"},
        },
    }
    assert parse_baselines(content) == [
        Baseline("humaneval", "Qwen/Qwen2.5-Coder-7B-Instruct", 0.878, "technical report"),
        Baseline("humaneval", "base", 0.3, kind="target"),
        Baseline("mbpp", "base", 0.35, kind="target"),
    ]


def test_baselines_as_a_list() -> None:
    entries = [{"benchmark": "mbpp", "model": "a", "score": 1, "source": "s"}]
    assert parse_baselines(entries) == [Baseline("mbpp", "a", 1, "s")]
    assert parse_baselines({"targets": entries}) == [Baseline("mbpp", "a", 1, "s", "target")]
    assert parse_baselines([{"benchmark": "mbpp", "model": "a", "score": None}]) == []


def test_baselines_of_a_suite_and_of_its_record() -> None:
    suite = {
        "suite": "overnight",
        "models": ["a.gguf"],
        "benchmarks": [
            "mbpp",
            {
                "benchmark": "humanevalplus",
                "targets": {"pass@1": 0.35, "pass@10": 0.6},
                "baselines": [{"model": "GPT-4", "score": 0.78, "source": "EvalPlus leaderboard"}],
            },
        ],
    }
    expected = [
        Baseline("humanevalplus", "GPT-4", 0.78, "EvalPlus leaderboard"),
        Baseline("humanevalplus", "target", 0.35, kind="target"),
    ]
    assert parse_baselines(suite) == expected
    assert parse_baselines({"benchmarks": [{"benchmark": "mbpp"}]}) == []
    published = {"benchmark": "humanevalplus", "model": "GPT-4", "score": 0.78}
    record = {
        "schema": 1,
        "baselines": [{**published, "figure": "pass@1", "source": "EvalPlus leaderboard"}],
        "targets": [
            {"benchmark": "humanevalplus", "score": 0.35, "figure": "pass@1"},
            {"benchmark": "humanevalplus", "score": 0.6, "figure": "pass@10"},
        ],
    }
    assert parse_baselines(record) == expected


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("text", "neither a list"),
        ({"models": []}, "'baselines' or 'targets'"),
        ({"baselines": 5}, "baselines is not a list or a mapping"),
        ({"baselines": {"a": 0.5}}, "a has no mapping of benchmarks"),
        ({"baselines": {"a": {"humaneval": "high"}}}, "a, humaneval: the score is not a number"),
        ({"baselines": {"a": {"humaneval": True}}}, "the score is not a number"),
        ({"baselines": {"a": {"humaneval": 87.8}}}, "the score 87.8 is not between 0 and 1"),
        ([{"benchmark": "x", "model": "a", "score": float("nan")}], "entry 1: a, x"),
        ([{"benchmark": "x", "model": "a"}], "entry 1: .*score"),
        ([{"benchmark": "x", "model": "a", "score": 0.5, "sauce": ""}], "entry 1: .*sauce"),
        ([5], "entry 1 is not a mapping"),
        ({"benchmarks": [{"benchmark": "x", "targets": [1]}]}, "x: baselines are not a list"),
        ({"benchmarks": [{"benchmark": "x", "baselines": [1]}]}, "entry 1 is not a mapping"),
        ({"benchmarks": [{"baselines": [{"model": "a", "score": 0.5}]}]}, "entry 1: .*benchmark"),
    ],
)
def test_wrong_baselines_are_one_line(content: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        parse_baselines(content)
    assert "\n" not in str(caught.value)


def test_facts_by_model_and_of_a_bench() -> None:
    assert parse_facts({"a": {"file_bytes": 5, "tokens_per_s": 1.5}}) == {
        "a": ModelFacts(file_bytes=5, tokens_per_s=1.5)
    }
    bench = DOCUMENTS["bench"]
    rate = SPREAD["median"] * 8**0.5  # of the largest batch
    facts = ModelFacts(tokens_per_s=rate, memory_bytes=400 << 20)
    assert parse_facts(bench) == {MODEL["weights_sha256"]: facts}
    on_gpu = ModelFacts(tokens_per_s=rate, memory_bytes=5 << 20)
    assert parse_facts({**bench, "gpu_peak_memory_mb": 5.0}) == {MODEL["weights_sha256"]: on_gpu}


@pytest.mark.parametrize(
    "content", [[], {"a": 5}, {"a": {"weight": 1}}, {"model_identity": {}, "figures": {}}]
)
def test_wrong_facts_are_one_line(content: Any) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        parse_facts(content)


def write_gguf(path: Path) -> None:
    """Write a file with 64 weights of 32 bits."""
    name = b"token_embd.weight"
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, 0)
    header += struct.pack("<Q", len(name)) + name + struct.pack("<IQIQ", 1, 64, 0, 0)
    header += b"\0" * (-len(header) % 32)
    path.write_bytes(header + struct.pack("<64f", *range(64)))


def test_sizes_are_read_from_a_file_that_has_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_gguf(path)
    weights = file_sha256(path)
    identity = ModelIdentity("m", "gguf", weights, "chat", path=str(path))
    (facts,) = find_sizes([identity]).values()
    assert facts == ModelFacts(path.stat().st_size, parameters=64, bits_per_weight=32.0)
    path.write_bytes(path.read_bytes() + b"more")
    assert find_sizes([identity]) == {}
    path.unlink()
    assert find_sizes([identity]) == {}


def test_facts_fill_each_other_up() -> None:
    assert ModelFacts(1, None, 3.0).fill(ModelFacts(2, 5, 4.0)) == ModelFacts(1, 5, 3.0)
