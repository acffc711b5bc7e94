"""Checkpoints: the same shape out of GGUF files, .apr files and Hugging Face folders."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ModelError, UsageError
from assay.formats.architectures import gguf_name, hf_name
from assay.formats.format import Checkpoint, read_checkpoint
from assay.formats.rope import LLAMA3, llama3_divisors
from assay.formats.tensors import QUANTISED
from assay.models import convert
from tests.formats.apr_samples import AprSample
from tests.models.small_models import (
    HEAD,
    HEADS,
    HIDDEN,
    KV_HEADS,
    LAYERS,
    MERGES,
    TEMPLATE,
    TOKENS,
    TYPES,
    gguf,
    in_shards,
    np,
    shapes,
    write_small,
)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_small(tmp_path / "small.gguf")


def weights(checkpoint: Checkpoint) -> dict[str, Any]:
    return {weight.name: weight.values for weight in checkpoint.tensors()}


def test_settings_of_a_gguf_in_hugging_faces_words(small: Path) -> None:
    checkpoint = read_checkpoint(small)
    assert checkpoint.config.content == {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD,
        "intermediate_size": 512,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "vocab_size": len(TOKENS),
        "tie_word_embeddings": True,
        "attention_bias": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    assert checkpoint.tokenizer_config.content["eos_token"] == "<|im_end|>"
    assert checkpoint.tokenizer_config.content["chat_template"] == TEMPLATE
    assert checkpoint.generation_config.content["eos_token_id"] == [2, 0]


def test_names_of_tensors_go_both_ways() -> None:
    for name in [*shapes(), "output.weight", "blk.17.attn_q.bias", "blk.0.attn_q_norm.weight"]:
        theirs = hf_name(name)
        assert theirs is not None
        assert gguf_name(theirs) == name
    assert hf_name("blk.0.ffn_gate_exps.weight") is None


def test_rows_of_q_and_k_are_put_back_in_transformers_order(small: Path) -> None:
    """llama.cpp turns neighbours (2i, 2i+1) of a head, transformers i and i + half."""
    stored = {t.name: t.data for t in gguf.GGUFReader(small).tensors}
    found = weights(read_checkpoint(small))
    for letter, heads in (("q", HEADS), ("k", KV_HEADS)):
        theirs = stored[f"blk.1.attn_{letter}.weight"]
        ours = found[f"model.layers.1.self_attn.{letter}_proj.weight"]
        for head in range(heads):
            for pair in range(HEAD // 2):
                row = head * HEAD
                assert np.array_equal(ours[row + pair], theirs[row + 2 * pair])
                assert np.array_equal(ours[row + pair + HEAD // 2], theirs[row + 2 * pair + 1])
    for name in ("attn_v", "attn_output", "ffn_down"):
        hf = hf_name(f"blk.1.{name}.weight")
        assert hf is not None
        assert np.array_equal(found[hf], stored[f"blk.1.{name}.weight"])


def test_the_same_model_out_of_every_format(small: Path, tmp_path: Path) -> None:
    first = read_checkpoint(small)
    for target in ("a.apr", "folder"):
        convert(small, tmp_path / target)
        other = read_checkpoint(tmp_path / target)
        assert other.config.replace(torch_dtype=None) == first.config.replace(torch_dtype=None)
        assert other.tokenizer_json == first.tokenizer_json
        assert other.tokenizer_config == first.tokenizer_config
        assert other.generation_config == first.generation_config
        for (name, ours), (_, theirs) in zip(
            sorted(weights(first).items()), sorted(weights(other).items()), strict=True
        ):
            assert np.array_equal(ours, theirs), name


def test_families_without_a_turned_order_stay_as_they_are(tmp_path: Path) -> None:
    path = write_small(tmp_path / "q.gguf", architecture="qwen2", pre="qwen2")
    stored = {t.name: t.data for t in gguf.GGUFReader(path).tensors}
    checkpoint = read_checkpoint(path)
    assert checkpoint.config.content["model_type"] == "qwen2"
    found = weights(checkpoint)["model.layers.0.self_attn.q_proj.weight"]
    assert np.array_equal(found, stored["blk.0.attn_q.weight"])


def another_programs_apr(tmp_path: Path, **changes: Any) -> Path:
    """As programs write it that know nothing of us: settings and vocabulary under its keys."""
    gguf_path = write_small(tmp_path / "of.gguf")
    stored = gguf.GGUFReader(gguf_path).tensors
    metadata: dict[str, Any] = {
        "model_type": "llama",
        "architecture": "llama",
        "original_format": "gguf",
        "hidden_size": HIDDEN,
        "num_layers": LAYERS,
        "num_heads": HEADS,
        "num_kv_heads": KV_HEADS,
        "intermediate_size": 512,
        "max_position_embeddings": 512,
        "vocab_size": len(TOKENS),
        "rope_theta": 10000.0,
        "rope_type": 0,
        "rms_norm_eps": 9.999999747378752e-06,
        "chat_template": TEMPLATE,
        "tied_embeddings": True,
        "tokenizer.vocabulary": TOKENS,
        "tokenizer.merges": MERGES,
        "tokenizer.token_type": TYPES,
        "tokenizer.model": "gpt2",
        "tokenizer.pre_type": "smollm",
        "tokenizer.bos_token_id": 1,
        "tokenizer.eos_token_id": 2,
        **changes,
    }
    tensors = [
        (hf_name(t.name) or "", 0, tuple(t.shape.tolist()[::-1]), t.data.tobytes()) for t in stored
    ]
    # They repeat the embedding as the head.
    tensors.append(("lm_head.weight", *next(t[1:] for t in tensors if "embed" in t[0])))
    path = tmp_path / "theirs.apr"
    path.write_bytes(AprSample(metadata=metadata, tensors=tensors).build())
    return path


def test_an_apr_of_another_program_is_the_same_model(tmp_path: Path) -> None:
    ours, theirs = (
        read_checkpoint(path) for path in (another_programs_apr(tmp_path), tmp_path / "of.gguf")
    )
    assert ours.config == theirs.config
    assert ours.tokenizer_json.content["model"] == theirs.tokenizer_json.content["model"]
    assert (
        ours.tokenizer_json.content["added_tokens"] == theirs.tokenizer_json.content["added_tokens"]
    )
    one, other = weights(ours), weights(theirs)
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_an_apr_that_was_never_a_gguf_keeps_its_rows(tmp_path: Path) -> None:
    path = another_programs_apr(tmp_path, original_format="safetensors")
    found = weights(read_checkpoint(path))["model.layers.0.self_attn.q_proj.weight"]
    stored = {t.name: t.data for t in gguf.GGUFReader(tmp_path / "of.gguf").tensors}
    assert np.array_equal(found, stored["blk.0.attn_q.weight"])


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"architecture": "mamba", "model_type": "mamba"}, "family 'mamba'"),
        ({"num_heads": None}, "has no llama.attention.head_count"),
        ({"hidden_size": "many"}, "has no llama.embedding_length"),
        ({"tokenizer.pre_type": "brand-new"}, "pre-tokenizer 'brand-new'"),
        ({"tokenizer.pre_type": None}, "pre-tokenizer ''"),
        ({"tokenizer.vocabulary": None}, "0 tokens"),
        ({"tokenizer.vocabulary": 7}, "tokens that are not text"),
        ({"tokenizer.token_type": [1]}, "1 types of tokens"),
        ({"assay": {"gguf": [["a"]]}}, "metadata are damaged"),
        ({"assay": 3}, "metadata are damaged"),
    ],
)
def test_metadata_that_say_too_little(
    tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ModelError, match=f"theirs.apr: .*{complaint}"):
        read_checkpoint(another_programs_apr(tmp_path, **changes))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"architecture": "gemma9"}, "family 'gemma9'.*llama"),
        ({"pre": "brand-new"}, "unknown pre-tokenizer 'brand-new' .*smollm"),
    ],
)
def test_a_gguf_that_is_not_understood_says_why(
    tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ModelError, match=complaint):
        read_checkpoint(write_small(tmp_path / "x.gguf", **changes))


@pytest.mark.slow
def test_flipped_bits_in_a_gguf_give_a_model_or_one_clear_error(
    tmp_path: Path, small: Path
) -> None:
    whole = small.read_bytes()
    header = min(tensor.data_offset for tensor in gguf.GGUFReader(small).tensors)
    draw = random.Random(1)
    understood = 0
    for _ in range(400):
        damaged = bytearray(whole)
        damaged[draw.randrange(4, header)] ^= 1 << draw.randrange(8)
        (tmp_path / "x.gguf").write_bytes(damaged)
        try:
            understood += len(list(read_checkpoint(tmp_path / "x.gguf").tensors())) > 0
        except ModelError as error:
            assert "\n" not in str(error)
    assert 0 < understood < 400


def test_opening_reads_no_weights(tmp_path: Path, small: Path) -> None:
    path = tmp_path / "x.apr"
    convert(small, path)
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    checkpoint = read_checkpoint(path)
    with pytest.raises(ModelError, match="CRC is wrong"):
        next(checkpoint.tensors())


def test_the_stretched_rotary_embedding_of_llama_3_is_recognised(tmp_path: Path) -> None:
    path = write_small(tmp_path / "x.gguf", pre="llama-bpe")
    folder, back = tmp_path / "folder", tmp_path / "back.gguf"
    convert(path, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "rope_scaling": LLAMA3[1].to_json()}))
    convert(folder, back)
    (found,) = [t for t in gguf.GGUFReader(back).tensors if t.name == "rope_freqs.weight"]
    assert found.data.tolist() == pytest.approx(llama3_divisors(10000.0, HEAD, LLAMA3[1]))
    assert found.data.min() == 1
    assert found.data.max() == 32
    checkpoint = read_checkpoint(back)
    assert checkpoint.config.content["rope_scaling"] == LLAMA3[1].to_json()
    assert "rope_freqs.weight" not in weights(checkpoint)
    convert(back, tmp_path / "x.apr")
    convert(tmp_path / "x.apr", tmp_path / "again.gguf")
    assert (tmp_path / "again.gguf").read_bytes() == back.read_bytes()


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (
            {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128},
            {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128},
        ),
        ({"type": "linear", "factor": 2.0}, {"rope_type": "linear", "factor": 2.0}),
    ],
)
def test_other_stretches_go_over(
    tmp_path: Path, small: Path, said: dict[str, Any], found: dict[str, Any]
) -> None:
    convert(small, tmp_path / "f")
    config = json.loads((tmp_path / "f" / "config.json").read_text())
    (tmp_path / "f" / "config.json").write_text(json.dumps({**config, "rope_scaling": said}))
    convert(tmp_path / "f", tmp_path / "g.gguf")
    assert read_checkpoint(tmp_path / "g.gguf").config.content["rope_scaling"] == found


def test_a_stretch_that_gguf_has_no_word_for_is_named(tmp_path: Path, small: Path) -> None:
    convert(small, tmp_path / "f")
    config = json.loads((tmp_path / "f" / "config.json").read_text())
    config["rope_parameters"] = {"rope_type": "longrope", "rope_theta": 5.0}
    (tmp_path / "f" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="'longrope', which a GGUF file cannot store"):
        convert(tmp_path / "f", tmp_path / "g.gguf")
    assert not list(tmp_path.glob("g.gguf*"))
    config["rope_parameters"] = {"rope_type": "linear", "factor": "four"}
    (tmp_path / "f" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="its rope_scaling has no factor"):
        convert(tmp_path / "f", tmp_path / "g.gguf")


def test_weights_in_several_files(tmp_path: Path, small: Path) -> None:
    folder = tmp_path / "f"
    convert(small, folder)
    in_shards(folder)
    one, other = weights(read_checkpoint(small)), weights(read_checkpoint(folder))
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda f: (f / "config.json").write_text("{"), "config.json: is not valid JSON"),
        (lambda f: (f / "config.json").write_text("[]"), "not a JSON object"),
        (lambda f: (f / "tokenizer.json").unlink(), "has no tokenizer.json"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), "tokenizer.json: is not a tokenizer"),
        (lambda f: (f / "model.safetensors").unlink(), "no .safetensors files"),
        (lambda f: (f / "model.safetensors").write_bytes(b"abc"), "cut off"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\xff" * 99), "a header of"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\2" + bytes(7) + b"[]"), "damaged"),
        (lambda f: (f / "model.safetensors.index.json").write_text(
            '{"weight_map": {"a": "../../etc/passwd"}}'), "no weights file"),
    ],
)  # fmt: skip
def test_a_damaged_folder_is_one_line(
    tmp_path: Path, small: Path, damage: Any, complaint: str
) -> None:
    convert(small, tmp_path / "f")
    damage(tmp_path / "f")
    with pytest.raises(ModelError, match=complaint) as caught:
        list(read_checkpoint(tmp_path / "f").tensors())
    assert "\n" not in str(caught.value)


def test_a_newer_folders_template_lies_in_a_file_of_its_own(tmp_path: Path, small: Path) -> None:
    convert(small, tmp_path / "f")
    (tmp_path / "f" / "chat_template.jinja").write_text("{{ new }}")
    assert read_checkpoint(tmp_path / "f").tokenizer_config.content["chat_template"] == "{{ new }}"


@pytest.mark.parametrize("dtype", QUANTISED)
def test_a_quantised_copy_has_the_bytes_that_ggml_gives(
    tmp_path: Path, small: Path, dtype: str
) -> None:
    before = weights(read_checkpoint(small))
    convert(small, tmp_path / "q.gguf", dtype=dtype)
    kind = gguf.GGMLQuantizationType[dtype.upper()]
    for tensor in gguf.GGUFReader(tmp_path / "q.gguf").tensors:
        if len(tensor.shape) == 1:
            assert tensor.tensor_type == gguf.GGMLQuantizationType.F32
        elif "ffn" in tensor.name:  # the rows of q and k are in another order
            assert tensor.tensor_type == kind
            expected = gguf.quants.quantize(before[str(hf_name(tensor.name))], kind)
            assert np.array_equal(tensor.data, expected)
    after = weights(read_checkpoint(tmp_path / "q.gguf"))
    name = "model.layers.0.mlp.up_proj.weight"
    step = np.abs(before[name]).max() / (127 if dtype == "q8_0" else 7)
    assert np.abs(after[name] - before[name]).max() <= step


@pytest.mark.parametrize("target", ["m.apr", "folder"])
def test_only_gguf_files_hold_quantised_copies(tmp_path: Path, small: Path, target: str) -> None:
    with pytest.raises(UsageError, match="--dtype q8_0: only a GGUF file can store it"):
        convert(small, tmp_path / target, dtype="q8_0")
    assert [path.name for path in tmp_path.iterdir()] == ["small.gguf"]
