"""Map model families between GGUF's and Hugging Face's names of settings and tensors."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from assay.errors import ModelError
from assay.formats.config import ModelConfig
from assay.formats.tensors import Tensor, reorder_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from assay.formats.gguf.file import GgufValue

# The two numbers of a head that the rotary embedding rotates together: neighbours, as in llama.cpp
# for the llama family, or one of each half, as in transformers for all.
Rotary = Literal["neighbours", "halves"]


# GGUF's names of tensors and Hugging Face's; {} is the number of the layer.
TENSOR_NAMES = (
    ("token_embd", "model.embed_tokens"),
    ("output_norm", "model.norm"),
    ("output", "lm_head"),
    ("blk.{}.attn_norm", "model.layers.{}.input_layernorm"),
    ("blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"),
    ("blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"),
    ("blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"),
    ("blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"),
    ("blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm"),
    ("blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm"),
    ("blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"),
    ("blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"),
    ("blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"),
    ("blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"),
)
_TO_HF = dict(TENSOR_NAMES)
_TO_GGUF = {theirs: ours for ours, theirs in TENSOR_NAMES}
_TURNED = re.compile(r"model\.layers\.\d+\.self_attn\.([qk])_proj\.(weight|bias)")
# Hugging Face's setting, GGUF's key after the architecture's name.
NUMBERS = (
    ("max_position_embeddings", "context_length"),
    ("hidden_size", "embedding_length"),
    ("num_hidden_layers", "block_count"),
    ("intermediate_size", "feed_forward_length"),
    ("num_attention_heads", "attention.head_count"),
    ("num_key_value_heads", "attention.head_count_kv"),
)


@dataclass(frozen=True, slots=True)
class Architecture:
    """A family. ``settings`` are Hugging Face's keys with a fixed value."""

    name: str  # GGUF's
    model_type: str  # Hugging Face's
    class_name: str
    rotary: Rotary = "halves"  # in GGUF files
    has_head_dim: bool = True
    settings: tuple[tuple[str, Any], ...] = ()


ARCHITECTURES = (
    Architecture("llama", "llama", "LlamaForCausalLM", "neighbours"),
    Architecture("llama", "mistral", "MistralForCausalLM", "neighbours"),
    Architecture(
        "qwen2",
        "qwen2",
        "Qwen2ForCausalLM",
        has_head_dim=False,
        settings=(("use_sliding_window", False),),
    ),
    Architecture("qwen3", "qwen3", "Qwen3ForCausalLM", settings=(("use_sliding_window", False),)),
)


def by_gguf_name(name: str, where: str) -> Architecture:
    return _known({known.name: known for known in reversed(ARCHITECTURES)}, name, where)


def by_model_type(name: str, where: str) -> Architecture:
    return _known({known.model_type: known for known in ARCHITECTURES}, name, where)


def is_computed(name: str) -> bool:
    """Return whether a tensor of an old folder is now computed from the settings."""
    return name.endswith("rotary_emb.inv_freq")


def hf_name(name: str) -> str | None:
    """Return Hugging Face's name of a tensor with GGUF's name, or None if it has none."""
    return _rename(name, _TO_HF)


def gguf_name(name: str) -> str | None:
    return _rename(name, _TO_GGUF)


def with_rotary(tensor: Tensor, has: Rotary, wants: Rotary, config: ModelConfig) -> Tensor:
    """Return the tensor in the other rotary order, if it has one. Rows move, bytes stay."""
    match = _TURNED.fullmatch(tensor.name)
    if has == wants or not match:
        return tensor
    heads = config.key_value_heads if match[1] == "k" else config.heads
    rows = tensor.shape[0] if tensor.shape else 1
    if heads is None or heads < 1 or rows % (2 * heads):
        raise ModelError(
            f"{tensor.name}: has {rows} rows for {heads} heads. Download or convert it again."
        )
    split = (2, -1) if wants == "neighbours" else (-1, 2)

    def order(rows: NDArray[Any]) -> NDArray[Any]:
        return rows.reshape(heads, *split).swapaxes(1, 2).reshape(-1)

    return reorder_rows(tensor, order)


def config_from_gguf(
    metadata: Mapping[str, GgufValue], shapes: Mapping[str, tuple[int, ...]], where: str
) -> ModelConfig:
    """Return the content of a config.json. ``shapes`` has the tensors by Hugging Face's names."""
    architecture = by_gguf_name(str(metadata.get("general.architecture", "")), where)
    prefix = architecture.name

    def number(key: str, otherwise: float | None = None) -> float:
        value: GgufValue | None = metadata.get(f"{prefix}.{key}", otherwise)
        if isinstance(value, list) and len(set(value)) == 1:
            value = value[0]
        if not isinstance(value, int | float) or value <= 0:
            raise ModelError(f"{where}: has no {prefix}.{key}. Download or convert it again.")
        return value

    sizes: dict[str, int] = {}
    for theirs, ours in NUMBERS:
        heads = sizes.get("num_attention_heads") if ours.endswith("_kv") else None
        sizes[theirs] = int(number(ours, heads))
    usual = sizes["hidden_size"] // sizes["num_attention_heads"]
    config = {
        "architectures": [architecture.class_name],
        "model_type": architecture.model_type,
        "hidden_act": "silu",
        **sizes,
        "head_dim": int(number("attention.key_length", usual)),
    }
    config["rms_norm_eps"] = shortest(number("attention.layer_norm_rms_epsilon"))
    config["rope_theta"] = shortest(number("rope.freq_base", 10000.0))
    config["vocab_size"] = shapes.get("model.embed_tokens.weight", (0,))[0]
    config["tie_word_embeddings"] = "lm_head.weight" not in shapes
    config["attention_bias"] = "model.layers.0.self_attn.q_proj.bias" in shapes
    for theirs, ours in (("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
        if isinstance(token := metadata.get(f"tokenizer.ggml.{ours}_token_id"), int):
            config[f"{theirs}_token_id"] = token
    if not architecture.has_head_dim:
        del config["head_dim"], config["attention_bias"]
    return ModelConfig({**config, **dict(architecture.settings)})


def shortest(value: float) -> float:
    """Return the shortest decimal with the same float32: 1e-05 for 9.999999747378752e-06."""
    for digits in range(1, 10):
        short = float(f"{value:.{digits}g}")
        if struct.pack("<f", short) == struct.pack("<f", value):
            return short
    return value


def _rename(name: str, table: Mapping[str, str]) -> str | None:
    stem, _, ending = name.rpartition(".")
    number = re.search(r"\.(\d+)\.", stem)
    pattern = stem.replace(number[0], ".{}.", 1) if number else stem
    if pattern not in table or ending not in ("weight", "bias"):
        return None
    return f"{table[pattern].format(number[1] if number else '')}.{ending}"


def _known(architectures: Mapping[str, Architecture], name: str, where: str) -> Architecture:
    if name in architectures:
        return architectures[name]
    names = ", ".join(known.model_type for known in ARCHITECTURES)
    raise ModelError(
        f"{where}: is a model of the family '{name}', which cannot be read here (only {names}). "
        "Run a GGUF file with llama.cpp, a Hugging Face folder with hf."
    )
