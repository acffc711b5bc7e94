"""Default names of models: one for each model, whatever engine runs it."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from assay.formats.format import describe_model
from assay.formats.gguf.file import STRING, GgufPair, write_gguf
from assay.formats.huggingface.safetensors import write_safetensors
from assay.formats.stored import StoredModel, count_parameters, name_format, parse_size
from assay.formats.tensors import Tensor
from assay.models import convert
from assay.models.names import base_name, compose_name, default_name, folder_identity, short_count
from assay.models.options import EngineOptions
from tests.models.small_models import write_small

STORED = StoredModel(parameters=134_515_008, number_format="Q4_K_M")
ROWS, WIDTH = 40, 32


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct.Q4_1"),
        ("qwen/model.gguf", "qwen/model 135M Q4_K_M"),
        ("qwen/ggml-model-q4_0.gguf", "qwen/ggml-model-q4_0 135M"),
        ("qwen/model-bf16.gguf", "qwen/model-bf16 135M"),
        ("qwen/model-00001-of-00003.gguf", "qwen/model 135M Q4_K_M"),
        ("tiny-7B.gguf", "tiny-7B Q4_K_M"),
        ("mine.gguf", "mine 135M Q4_K_M"),
    ],
)
def test_a_file_is_named_by_what_its_name_leaves_out(tmp_path: Path, path: str, name: str) -> None:
    """Not every ``model.gguf`` can be called "model"."""
    file = tmp_path / path
    file.parent.mkdir(exist_ok=True)
    file.touch()
    assert default_name(file, stored=STORED) == name


def test_folders_and_adapters(tmp_path: Path) -> None:
    """Base + adapter must not be listed as the base."""
    base, adapter = tmp_path / "qwen2-0.5B", tmp_path / "lora" / "checkpoint-500"
    base.mkdir()
    adapter.mkdir(parents=True)
    assert default_name(base, stored=StoredModel(5 * 10**8)) == "qwen2-0.5B"
    assert default_name(base, adapter=adapter) == "qwen2-0.5B + lora/checkpoint-500"
    assert default_name(adapter, stored=StoredModel(10**7)) == "lora/checkpoint-500 10M"


def test_a_link_has_the_name_of_its_target_but_not_a_digest(tmp_path: Path) -> None:
    """A GGUF file in the hub's cache is a link to a file that is named by its digest."""
    blob, folder = tmp_path / "blobs" / ("ab" * 32), tmp_path / "models--o--m" / "snapshots" / "f00"
    for place in (blob.parent, folder):
        place.mkdir(parents=True)
    blob.touch()
    (folder / "qwen-1B-Q8_0.gguf").symlink_to(blob)
    (tmp_path / "current.gguf").symlink_to(tmp_path / "named-1B.F16.gguf")
    (tmp_path / "named-1B.F16.gguf").touch()
    assert default_name(folder / "qwen-1B-Q8_0.gguf") == "qwen-1B-Q8_0"
    assert default_name(tmp_path / "current.gguf") == "named-1B.F16"
    assert default_name(folder) == "o/m"
    titled = StoredModel(parameters=10**9, title="Some Coder")
    assert default_name(blob, stored=titled) == "Some Coder 1B"


@pytest.mark.parametrize(
    ("count", "text"),
    [(999, "999"), (1_500, "1.5K"), (134_515_008, "135M"), (7_615_616_512, "7.6B"),
     (70_553_706_496, "71B"), (8_030_261_248, "8B"), (1_543_714_304, "1.5B")],
)  # fmt: skip
def test_counts_are_short(count: int, text: str) -> None:
    assert short_count(count) == text


@pytest.mark.parametrize(
    ("label", "count", "name"),
    [
        ("7B", 7_615_616_512, "m 7B"),  # as its makers round it
        ("1.5B", 1_543_714_304, "m 1.5B"),
        ("7B", 134_515_008, "m 135M"),  # of the model that a smaller one was made from
        ("8x7B", 46_702_792_704, "m 47B"),
        ("7B", 0, "m 7B"),  # of one of several files
        ("", 0, "m"),
    ],
)
def test_a_size_in_the_metadata_must_fit_the_weights(label: str, count: int, name: str) -> None:
    assert compose_name("m", StoredModel(count, size_label=label)) == name


# Real models: the width and rows of the embedding, the weights without a second copy, the size.
@pytest.mark.parametrize(
    ("rows", "width", "once", "size", "repeats"),
    [
        (151_936, 1_536, 1_543_714_304, "1.5B", True),  # Qwen2.5-1.5B
        (151_936, 896, 494_032_768, "0.5B", True),
        (151_936, 2_048, 3_085_938_688, "3B", True),
        (151_936, 2_560, 4_022_468_096, "4B", True),  # Qwen3-4B
        (152_064, 3_584, 7_070_619_136, "7B", False),  # Qwen2.5-7B has a head of its own
        (32_000, 4_096, 7_110_660_096, "7B", False),  # Mistral-7B
        (128_256, 4_096, 7_504_924_672, "8B", False),  # Llama-3-8B
        (151_936, 1_536, 1_543_714_304, "", False),  # nothing states the size
    ],
)
def test_a_copy_of_the_embedding_is_counted_once(
    rows: int, width: int, once: int, size: str, repeats: bool
) -> None:
    """Counted twice, Qwen2.5-Coder-1.5B would be called 1.8B."""
    embedding = (rows, width)
    shapes = {
        "token_embd.weight": embedding,
        "output.weight": embedding,
        "rest": (once - rows * width,),
    }
    found = count_parameters(shapes, stated=["", f"Name {size}"])
    assert found == (once if repeats else once + rows * width)
    assert count_parameters(shapes, is_tied=True) == once
    assert count_parameters({**shapes, "output.weight": (rows, 1)}, is_tied=True) == once + rows


def test_sizes_and_mixtures() -> None:
    assert parse_size("Qwen2.5 Coder 1.5B Instruct") == 1.5e9
    assert parse_size("SmolLM2-135M") == 135e6
    assert parse_size("phi2.7b-q4") == parse_size("Base") == 0
    assert name_format({"Q4_K": 100, "Q6_K": 40}, 15) == "Q4_K_M"
    assert name_format({"Q8_0": 100, "F32": 1}, 15) == "Q8_0"  # the metadata were not changed
    assert name_format({}, 15) == ""


def _tensor(name: str, content: float, rows: int = ROWS) -> Tensor:
    data = struct.pack("<f", content) * (rows * WIDTH)
    return Tensor(name, "F32", (rows, WIDTH), len(data), lambda: data)


@pytest.mark.parametrize(("head", "copies"), [(1.0, 1), (2.0, 2)])
def test_a_gguf_file_with_the_same_bytes_twice(tmp_path: Path, head: float, copies: int) -> None:
    path = tmp_path / "m.gguf"
    tensors = [_tensor("token_embd.weight", 1.0), _tensor("output.weight", head)]
    with path.open("wb") as file:
        write_gguf(file, [GgufPair("general.name", STRING, "M")], tensors, lambda _: None)
    assert describe_model(path) == StoredModel(copies * ROWS * WIDTH, "F32", "M")


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"tie_word_embeddings": True}, "tuned 1.3K"),
        ({}, "tuned 2.6K"),
        ({"quantization_config": {"quant_method": "fp8"}}, "tuned 2.6K fp8"),
    ],
)
def test_folders(tmp_path: Path, config: dict[str, object], name: str) -> None:
    folder = tmp_path / "tuned"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    tensors = [_tensor("model.embed_tokens.weight", 1.0), _tensor("lm_head.weight", 1.0)]
    with (folder / "model.safetensors").open("wb") as file:
        write_safetensors(file, tensors, lambda _: None)
    assert default_name(folder) == name
    for engine in ("hf", "vllm"):
        found = folder_identity(engine, str(folder), folder, None, "float32", EngineOptions())
        assert found.name == name


def test_packed_weights_have_no_number(tmp_path: Path) -> None:
    """Eight weights in an integer would be counted as one."""
    folder = tmp_path / "tuned"
    folder.mkdir()
    config = {"quantization_config": {"quant_method": "gptq", "bits": 4}}
    (folder / "config.json").write_text(json.dumps(config))
    packed = Tensor("a.qweight", "I32", (8, 8), 256, lambda: b"\0" * 256)
    with (folder / "model.safetensors").open("wb") as file:
        write_safetensors(file, [packed], lambda _: None)
    assert default_name(folder) == "tuned gptq"


def test_a_converted_file_keeps_its_name(tmp_path: Path) -> None:
    first = write_small(tmp_path / "small.gguf")
    names = {default_name(first)}
    for target in ("small.apr", "again/small.gguf"):
        convert(first, tmp_path / target)
        names.add(default_name(tmp_path / target))
    assert names == {default_name(first)}
    assert describe_model(tmp_path / "small.apr").title == describe_model(first).title != ""


def test_damaged_files_have_their_own_name(tmp_path: Path) -> None:
    for name, content in (("a.gguf", b"GGUF\x03"), ("b.apr", b"APR\0"), ("c.txt", b"")):
        (tmp_path / name).write_bytes(content)
        assert default_name(tmp_path / name) == name.partition(".")[0]


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("qwen 1.8B Q4_K", "qwen"),
        ("qwen 1.5B Q4_K_M", "qwen"),
        ("qwen", "qwen"),
        ("qwen + lora 1.5B", "qwen + lora"),
        ("qwen 1.5B + lora", "qwen + lora"),
        ("SmolLM2-135M-Instruct.Q4_1", "SmolLM2-135M-Instruct.Q4_1"),
        ("after step 2", "after step 2"),
    ],
)
def test_names_of_earlier_versions(name: str, base: str) -> None:
    assert base_name(name) == base
