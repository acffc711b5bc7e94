"""Check whether a model's tensors fit its settings, in known model families."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assay.errors import ModelError
from assay.formats.architectures import ARCHITECTURES
from assay.quality.check.contents import SkippedError

EMBEDDING, HEAD, NORM = "model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"
# A layer's tensors; the letters of a shape are those of ShapeSettings.sizes.
LAYER = {
    "input_layernorm.weight": "H",
    "self_attn.q_proj.weight": "QH",
    "self_attn.k_proj.weight": "KH",
    "self_attn.v_proj.weight": "KH",
    "self_attn.o_proj.weight": "HQ",
    "post_attention_layernorm.weight": "H",
    "mlp.gate_proj.weight": "FH",
    "mlp.up_proj.weight": "FH",
    "mlp.down_proj.weight": "HF",
}
ATTENTION_BIAS = {
    "self_attn.q_proj.bias": "Q",
    "self_attn.k_proj.bias": "K",
    "self_attn.v_proj.bias": "K",
}
OPTIONAL = {
    **ATTENTION_BIAS,
    "self_attn.o_proj.bias": "H",
    "self_attn.q_norm.weight": "D",
    "self_attn.k_norm.weight": "D",
    "mlp.gate_proj.bias": "F",
    "mlp.up_proj.bias": "F",
    "mlp.down_proj.bias": "H",
}
# Tensors that only some families have.
OF_FAMILY = {
    "qwen2": tuple(ATTENTION_BIAS),
    "qwen3": ("self_attn.q_norm.weight", "self_attn.k_norm.weight"),
}
_IN_LAYER = re.compile(r"model\.layers\.(\d{1,9})\.(.+)")


@dataclass(frozen=True, slots=True)
class ShapeSettings:
    """The numbers that decide a model's shapes."""

    family: str
    layers: int
    heads: int
    kv_heads: int
    sizes: Mapping[str, int]  # of H(idden), Q(ueries), K(eys), D (a head), F(eed-forward), V
    tied: bool
    attention_bias: bool

    def __str__(self) -> str:
        size = self.sizes
        return (
            f"{self.family}: {self.layers} layers of {size['H']:,}, {self.heads} heads of "
            f"{size['D']} ({self.kv_heads} for keys), feed-forward {size['F']:,}, vocabulary "
            f"{size['V']:,}"
        )


def settings_of(config: Mapping[str, Any]) -> ShapeSettings:
    """Return the settings of a config.json. Raise SkippedError if the family is unknown."""
    family = config.get("model_type")
    if family not in {known.model_type for known in ARCHITECTURES}:
        raise SkippedError(f"unknown tensor shapes for the model family '{family}'")
    if config.get("quantization_config"):
        raise SkippedError("quantised weights have other shapes, which are not checked")

    def number(name: str, otherwise: int | None = None) -> int:
        value = config.get(name)
        value = otherwise if value is None else value
        if not isinstance(value, int) or value < 1:
            raise ModelError(f"the settings have no {name}" if value is None else
                             f"the settings have the wrong {name} {value!r}")  # fmt: skip
        return value

    hidden, heads = number("hidden_size"), number("num_attention_heads")
    kv_heads = number("num_key_value_heads", heads)
    head = number("head_dim", hidden // heads)
    if heads % kv_heads:
        raise ModelError(
            f"{heads} attention heads are not a multiple of {kv_heads} key-value heads"
        )
    if config.get("head_dim") is None and hidden % heads:
        raise ModelError(f"the hidden size {hidden:,} is not a multiple of {heads} attention heads")
    sizes = {
        "H": hidden,
        "Q": heads * head,
        "K": kv_heads * head,
        "D": head,
        "F": number("intermediate_size"),
        "V": number("vocab_size"),
    }
    layers = number("num_hidden_layers")
    bias = family == "qwen2" or bool(config.get("attention_bias"))
    tied = bool(config.get("tie_word_embeddings"))
    return ShapeSettings(str(family), layers, heads, kv_heads, sizes, tied, bias)


def wrong_shapes(settings: ShapeSettings, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
    """Yield the existing tensors that have a wrong shape."""
    outside = {EMBEDDING: "VH", HEAD: "VH", NORM: "H"}
    for name, shape in shapes.items():
        inside = _IN_LAYER.fullmatch(name)
        letters = outside.get(name, "")
        if inside:
            letters = LAYER.get(inside[2]) or OPTIONAL.get(inside[2], "")
        expected = tuple(settings.sizes[letter] for letter in letters)
        if letters and shape != expected:
            yield f"{name} has the shape {list(shape)}, but the settings say {list(expected)}"


def missing(settings: ShapeSettings, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
    """Yield the tensors that are missing, and layers that should not exist."""
    if settings.layers > len(shapes):
        yield f"there are {len(shapes):,} tensors for {settings.layers:,} layers"
        return
    for name in (EMBEDDING, NORM):
        if name not in shapes:
            yield f"there is no {name}"
    if HEAD not in shapes and not settings.tied:
        yield f"there is no {HEAD}, and the embedding is not tied to it"
    wanted = [*LAYER, *OF_FAMILY.get(settings.family, ())]
    if settings.attention_bias:
        wanted += [name for name in ATTENTION_BIAS if name not in wanted]
    for layer in range(settings.layers):
        for name in wanted:
            if f"model.layers.{layer}.{name}" not in shapes:
                yield f"layer {layer} has no {name}"
    numbers = {int(match[1]) for name in shapes if (match := _IN_LAYER.fullmatch(name))}
    if beyond := [number for number in sorted(numbers) if number >= settings.layers]:
        yield f"there are tensors of layer {beyond[0]}, but layers end at {settings.layers - 1}"
