"""Default names of models: two models that differ never share one by accident."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.models.names import default_name, short_count


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct.Q4_1"),
        ("qwen/model.gguf", "qwen/model 135M Q4_K"),
        ("qwen/ggml-model-q4_0.gguf", "qwen/ggml-model-q4_0 135M"),
        ("qwen/model-bf16.gguf", "qwen/model-bf16 135M"),
        ("tiny-7B.gguf", "tiny-7B Q4_K"),
        ("mine.gguf", "mine 135M Q4_K"),
    ],
)
def test_a_file_is_named_by_what_its_name_leaves_out(tmp_path: Path, path: str, name: str) -> None:
    """Every ``model.gguf`` was called "model"."""
    file = tmp_path / path
    file.parent.mkdir(exist_ok=True)
    file.touch()
    assert default_name(file, parameters=134_515_008, number_format="Q4_K") == name


def test_folders_and_adapters(tmp_path: Path) -> None:
    """Base + adapter was listed as the base."""
    base, adapter = tmp_path / "qwen2-0.5B", tmp_path / "lora" / "checkpoint-500"
    base.mkdir()
    adapter.mkdir(parents=True)
    assert default_name(base, parameters=5 * 10**8) == "qwen2-0.5B"
    assert default_name(base, adapter=adapter) == "qwen2-0.5B + lora/checkpoint-500"
    assert default_name(adapter, parameters=10**7) == "lora/checkpoint-500 10M"


@pytest.mark.parametrize(
    ("count", "text"),
    [(999, "999"), (1_500, "1.5K"), (134_515_008, "135M"), (7_615_616_512, "7.6B"),
     (70_553_706_496, "71B")],
)  # fmt: skip
def test_counts_are_short(count: int, text: str) -> None:
    assert short_count(count) == text
