"""Small llama models, made here with the gguf package's own writer."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

# The whole module needs both; tests that import it are skipped without them.
np = pytest.importorskip("numpy", reason="needs numpy: pip install 'assay-eval[apr]'")
gguf = pytest.importorskip("gguf", reason="needs gguf: pip install 'assay-eval[apr]'")

HIDDEN, LAYERS, HEADS, KV_HEADS, FEED_FORWARD = 256, 2, 4, 2, 512
HEAD = HIDDEN // HEADS
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['content'] }}<|im_end|>{% endfor %}"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w", "1 2"]


def alphabet() -> list[str]:
    """GPT-2's characters for the 256 bytes: printable ones themselves, others moved up."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    moved = {byte: 256 + number for number, byte in enumerate(others)}
    return [chr(moved.get(byte, byte)) for byte in range(256)]


TOKENS = [*SPECIAL, *alphabet(), *(merge.replace(" ", "") for merge in MERGES)]
TYPES = [3] * len(SPECIAL) + [1] * (len(TOKENS) - len(SPECIAL))


def shapes() -> dict[str, tuple[int, ...]]:
    """Of the tensors, by GGUF's names."""
    found: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (len(TOKENS), HIDDEN),
        "output_norm.weight": (HIDDEN,),
    }
    for layer in range(LAYERS):
        for name, shape in {
            "attn_norm": (HIDDEN,),
            "attn_q": (HIDDEN, HIDDEN),
            "attn_k": (KV_HEADS * HEAD, HIDDEN),
            "attn_v": (KV_HEADS * HEAD, HIDDEN),
            "attn_output": (HIDDEN, HIDDEN),
            "ffn_norm": (HIDDEN,),
            "ffn_gate": (FEED_FORWARD, HIDDEN),
            "ffn_up": (FEED_FORWARD, HIDDEN),
            "ffn_down": (HIDDEN, FEED_FORWARD),
        }.items():
            found[f"blk.{layer}.{name}.weight"] = shape
    return found


def random_tensor(shape: tuple[int, ...], encoding: str, seed: int) -> Any:
    """Stored values; of a quantised encoding random blocks, whose scales are finite."""
    draw = np.random.default_rng(seed)
    if encoding == "F32" or len(shape) == 1:
        return draw.standard_normal(shape, np.float32)
    if encoding == "F16":
        return draw.standard_normal(shape, np.float32).astype(np.float16)
    if encoding == "BF16":
        bits = draw.standard_normal(shape, np.float32).view(np.uint32) >> 16
        return bits.astype(np.uint16)
    values, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[encoding]]
    blocks = draw.integers(0, 256, (shape[0], shape[1] // values, size), np.uint8)
    scale = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
    if encoding == "Q6_K":
        blocks[..., -2:] = scale
    else:  # one or two scales stand first
        blocks[..., 0:2] = scale
        if encoding in ("Q4_K", "Q5_K", "Q4_1"):
            blocks[..., 2:4] = scale
    return blocks.reshape(shape[0], -1)


def write_small(
    path: Path,
    encodings: tuple[str, ...] = ("F32",),
    *,
    architecture: str = "llama",
    tokens: list[str] = TOKENS,
    types: list[int] = TYPES,
    merges: list[str] = MERGES,
    **tokenizer: Any,
) -> Path:
    """A GGUF file whose matrices take the encodings in turn; ``tokenizer`` are keys of ggml's."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("Small")
    writer.add_uint32("general.file_type", 15)
    writer.add_array("general.languages", ["en", "de"])
    writer.add_context_length(512)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(HEAD)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model(tokenizer.pop("model", "gpt2"))
    writer.add_tokenizer_pre(tokenizer.pop("pre", "smollm"))
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(tokenizer.pop("chat_template", TEMPLATE))
    for key, value in tokenizer.items():
        getattr(writer, f"add_{key}")(value)
    for number, (name, shape) in enumerate(shapes().items()):
        encoding = encodings[number % len(encodings)] if len(shape) > 1 else "F32"
        if name == "token_embd.weight":
            shape = (len(tokens), HIDDEN)
        stored = random_tensor(shape, encoding, number)
        kind = gguf.GGMLQuantizationType[encoding]
        writer.add_tensor(name, stored, raw_dtype=None if encoding in ("F32", "F16") else kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def same_tensors(one: Path, other: Path) -> None:
    """Both GGUF files have the same tensors, by the gguf package's reader."""
    ours, theirs = gguf.GGUFReader(one), gguf.GGUFReader(other)
    assert [t.name for t in ours.tensors] == [t.name for t in theirs.tensors]
    for a, b in zip(ours.tensors, theirs.tensors, strict=True):
        assert a.tensor_type == b.tensor_type
        assert a.shape.tolist() == b.shape.tolist()
        assert a.data.tobytes() == b.data.tobytes()


def in_shards(folder: Path) -> None:
    """The weights in two files, and an index."""
    content = (folder / "model.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__")
    names = sorted(header)
    where = {}
    for number, some in enumerate((names[:5], names[5:])):
        part: dict[str, Any] = {}
        data = b""
        for name in some:
            start, end = (8 + size + at for at in header[name]["data_offsets"])
            part[name] = {**header[name], "data_offsets": [len(data), len(data) + end - start]}
            data += content[start:end]
            where[name] = f"model-{number}.safetensors"
        text = json.dumps(part).encode()
        (folder / f"model-{number}.safetensors").write_bytes(
            struct.pack("<Q", len(text)) + text + data
        )
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
