"""``checking``: what is found in sound models, and what is left out where it cannot be known."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ModelError
from assay.formats.tensors import BLOCKS, PLAIN
from assay.models import convert
from assay.quality.check.contents import SkippedError, TensorPart
from assay.quality.check.shapes import missing, settings_of, wrong_shapes
from assay.quality.check.stages import CheckStage, check
from assay.quality.check.texts import same_text
from assay.quality.check.values import FLOATS, not_finite
from tests.models.small_models import gguf, in_shards, np, write_small

for package in ("tokenizers", "jinja2"):
    pytest.importorskip(package, reason=f"needs {package}: pip install 'assay-eval[hf]'")


def found(path: Path, **options: Any) -> dict[str, CheckStage]:
    return {stage.name: stage for stage in check(str(path), **{"run": False, **options})}


def failed(stages: dict[str, CheckStage]) -> list[str]:
    return [name for name, stage in stages.items() if stage.status == "fail"]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_small(tmp_path / "small.gguf", ("Q4_K", "F16"))


@pytest.fixture
def folder(small: Path, tmp_path: Path) -> Path:
    convert(small, tmp_path / "folder")
    return tmp_path / "folder"


def blocks_of(encoding: str, count: int = 64) -> tuple[Any, Any]:
    """Random blocks of which every other one has a scale that is NaN or infinite, and which."""
    width = BLOCKS[encoding][1]
    draw = np.random.default_rng(sum(encoding.encode()))
    blocks = draw.integers(0, 256, (count, width), np.uint8)
    bad = np.arange(count) % 2 == 1
    for one in FLOATS.get(encoding, ()):
        size = np.dtype(one.kind).itemsize
        bits = np.ascontiguousarray(blocks[:, one.at : one.at + size]).view(one.kind)[:, 0]
        mask = np.array(one.mask, one.kind)
        highest = np.array(1 << (one.mask.bit_length() - 1), one.kind)
        # Without the highest bit of the exponent no multiple of a scale is too large.
        bits = np.where(bad, bits | mask, bits & ~highest).astype(one.kind)
        blocks[:, one.at : one.at + size] = bits[:, None].view(np.uint8)
    return blocks, bad & bool(FLOATS.get(encoding))


def values_of(encoding: str, blocks: Any) -> Any:
    kind = gguf.GGMLQuantizationType[encoding]
    if encoding == "BF16":
        return (blocks.view("<u2").astype(np.uint32) << 16).view(np.float32)
    if encoding in PLAIN:
        return blocks.view(PLAIN[encoding])
    with np.errstate(all="ignore"):
        return gguf.quants.dequantize(blocks, kind)


@pytest.mark.parametrize(
    "encoding", sorted({kind.name for kind in gguf.GGMLQuantizationType} - {"Q1_0", "Q8_1", "Q8_K"})
)
def test_scales_tell_what_dequantised_weights_would(encoding: str, tmp_path: Path) -> None:
    blocks, bad = blocks_of(encoding)
    values = values_of(encoding, blocks).reshape(len(blocks), -1)
    finite = np.isfinite(values).all(axis=1)
    assert np.array_equal(finite, ~bad)
    path = tmp_path / "weights"
    path.write_bytes(b"before" + blocks.tobytes())
    part = TensorPart("w", encoding, (blocks.size,), path, 6, blocks.size)
    counted = not_finite([part], lambda *_: None)
    assert counted.get("w", 0) == bad.sum()


@pytest.mark.parametrize(
    "encoding", ["APR_Q4", "APR_Q8", "C64", "F8_E4M3", "F8_E5M2", "F8_E8M0", "Q1_0", "Q8_K"]
)
def test_types_that_the_gguf_package_does_not_read(encoding: str, tmp_path: Path) -> None:
    size = BLOCKS.get(encoding, (1, 8))[1]
    for name, stored in (("zeros", bytes(size)), ("ones", b"\xff" * size)):
        (tmp_path / name).write_bytes(stored)
        part = TensorPart(name, encoding, (1,), tmp_path / name, 0, size)
        assert bool(not_finite([part], lambda *_: None)) == (name == "ones")


def test_large_tensors_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.quality.check.values.PIECE", 100)
    stored = np.ones(1000, np.float32)
    stored[[24, 25, 999]] = np.nan, np.inf, -np.inf
    (tmp_path / "x").write_bytes(stored.tobytes())
    told: list[tuple[int, int]] = []
    part = TensorPart("w", "F32", (1000,), tmp_path / "x", 0, 4000)
    assert not_finite([part], lambda *far: told.append(far)) == {"w": 3}
    assert told == [(4000, 4000)]


def test_a_family_that_is_not_known(tmp_path: Path) -> None:
    path = write_small(tmp_path / "x.gguf", ("Q4_K",), architecture="gemma3")
    stages = found(path)
    assert failed(stages) == []
    for name in ("shapes", "layers"):
        assert stages[name].status == "skipped"
        assert "model family 'gemma3'" in stages[name].reason
    for name in ("container", "header", "index", "values", "tokenizer", "template"):
        assert stages[name].status == "pass"


def test_a_folder_of_a_family_that_is_not_known(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "brand-new"}))
    stages = found(folder)
    assert failed(stages) == []
    assert "model family 'brand-new'" in stages["shapes"].reason
    assert stages["tokenizer"].status == "pass"


def test_a_base_model_has_no_template(tmp_path: Path) -> None:
    stages = found(write_small(tmp_path / "x.gguf", ("Q4_K",), chat_template=""))
    assert failed(stages) == []
    assert stages["template"].status == "skipped"
    assert "base model" in stages["template"].reason


def test_a_kind_of_tokenizer_that_only_llama_cpp_has(tmp_path: Path) -> None:
    path = write_small(tmp_path / "x.gguf", ("Q4_K",))
    path.write_bytes(path.read_bytes().replace(b"\4\0\0\0\0\0\0\0gpt2", b"\4\0\0\0\0\0\0\0rwkv"))
    stages = found(path)
    assert failed(stages) == []
    assert stages["tokenizer"].status == "skipped"
    assert stages["tokenizer"].reason == "only llama.cpp can read a tokenizer of the kind 'rwkv'"


def test_one_of_several_parts(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint16("split.count", 3)
    writer.add_tensor("blk.0.attn_norm.weight", np.ones(8, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    stages = found(path)
    assert failed(stages) == []
    assert stages["values"].status == "pass"
    for name in ("shapes", "layers", "tokenizer"):
        assert "one of 3 parts; join them" in stages[name].reason


def test_weights_in_several_files(folder: Path) -> None:
    in_shards(folder)
    stages = found(folder)
    assert failed(stages) == []
    assert "2 file(s)" in stages["container"].reason


@pytest.mark.parametrize(
    ("damage", "stage", "why"),
    [
        (lambda f: (f / "model-1.safetensors").unlink(), "container", "no weights file model-1"),
        (
            lambda f: shutil.copy(f / "model-0.safetensors", f / "model-1.safetensors"),
            "index",
            "2 tensors have the name",
        ),
        (
            lambda f: (f / "model-1.safetensors").write_bytes(
                (f / "model-1.safetensors").read_bytes()[:-9]
            ),
            "index",
            "cut off",
        ),
    ],
)
def test_damaged_shards(folder: Path, damage: Callable[[Path], Any], stage: str, why: str) -> None:
    in_shards(folder)
    damage(folder)
    stages = found(folder)
    assert failed(stages)[0] == stage
    assert why in stages[stage].reason


def test_other_tokenizers_are_transformers_alone(folder: Path) -> None:
    (folder / "tokenizer.json").rename(folder / "tokenizer.model")
    stages = found(folder)
    assert failed(stages) == []
    assert "only transformers reads tokenizer.model" in stages["tokenizer"].reason


def test_what_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", Path("/dev/null")):
        stages = found(path)
        assert failed(stages) == ["container"]
        assert {stage.status for stage in stages.values()} == {"fail", "skipped"}
    with pytest.raises(ModelError, match="none.gguf: is not on this machine"):
        check(str(tmp_path / "none.gguf"))


def test_a_file_that_may_not_be_read(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("assay.quality.check.stages.find_format", refuse)
    assert found(small)["container"].reason == "it cannot be read: Permission denied"


def test_without_numpy(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "numpy", None)
    stages = found(small)
    assert failed(stages) == []
    assert stages["values"].reason == "needs numpy: pip install 'assay-eval[apr]'"


def test_without_the_engine(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = __import__("importlib.util").util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda n, *a: None if n == "xllamacpp" else find(n, *a)
    )
    stages = found(small, run=True)
    for name in ("forward", "sample"):
        assert stages[name] == CheckStage(
            name, "skipped", "needs xllamacpp: pip install 'assay-eval[gguf]'"
        )


CONFIG = {
    "model_type": "qwen3",
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 6,
    "intermediate_size": 16,
    "vocab_size": 10,
}
LAYER = {
    "input_layernorm": (8,), "self_attn.q_proj": (12, 8), "self_attn.k_proj": (6, 8),
    "self_attn.v_proj": (6, 8), "self_attn.o_proj": (8, 12), "self_attn.q_norm": (6,),
    "self_attn.k_norm": (6,), "post_attention_layernorm": (8,), "mlp.gate_proj": (16, 8),
    "mlp.up_proj": (16, 8), "mlp.down_proj": (8, 16),
}  # fmt: skip
SHAPES: dict[str, tuple[int, ...]] = {
    "model.embed_tokens.weight": (10, 8),
    "lm_head.weight": (10, 8),
    "model.norm.weight": (8,),
    **{f"model.layers.0.{name}.weight": shape for name, shape in LAYER.items()},
}


def test_shapes_come_from_settings() -> None:
    settings = settings_of(CONFIG)
    assert not list(wrong_shapes(settings, SHAPES))
    assert not list(missing(settings, SHAPES))
    for name, shape in SHAPES.items():
        other = {**SHAPES, name: (*shape[:-1], shape[-1] + 1)}
        assert len(list(wrong_shapes(settings, other))) == 1, name
        less = {n: s for n, s in SHAPES.items() if n != name}
        assert len(list(missing(settings, less))) == 1, name
    tied = dataclasses.replace(settings, tied=True)
    without = {n: s for n, s in SHAPES.items() if n != "lm_head.weight"}
    assert not list(missing(tied, without))
    assert list(missing(settings_of({**CONFIG, "model_type": "qwen2"}), SHAPES)) == [
        f"layer 0 has no self_attn.{letter}_proj.bias" for letter in "qkv"
    ]


def test_quantised_folders_have_shapes_of_their_own() -> None:
    with pytest.raises(SkippedError, match="quantised"):
        settings_of({**CONFIG, "quantization_config": {"quant_method": "gptq"}})


@pytest.mark.parametrize(
    ("template", "out"),
    [
        ("{{ bos_token }}{{ messages[0]['content'] }}", "<s>hi"),
        ("{% for m in messages %}{% break %}{% endfor %}x", "x"),
        ("{% generation %}{{ messages[0].role }}{% endgeneration %}", "user"),
        ("{{ messages | tojson }}", '[{"role": "user", "content": "hi"}]'),
        ("{{ strftime_now('%%') }}{% if tools %}t{% endif %}", "%"),
        ("{%- if add_generation_prompt %}\n<a>\n{%- endif %}", "<a>"),
    ],
)
def test_templates_get_what_transformers_gives_them(template: str, out: str) -> None:
    from assay.quality.check.jinja import render_template

    messages = [{"role": "user", "content": "hi"}]
    assert render_template(template, messages, {"bos_token": "<s>"}) == out


def test_how_a_text_differs() -> None:
    assert same_text("abc", "abc") == same_text("abc", " abc") == ""
    assert same_text("abc", "ac") == "'abc' comes back as 'ac'"
    assert same_text("x" * 20 + "y", "x" * 20) == "'xxxxxxxxy' comes back as 'xxxxxxxx'"
