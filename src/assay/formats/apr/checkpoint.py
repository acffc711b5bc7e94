"""Read checkpoints from .apr files, and build the metadata of new ones.

The settings and the vocabulary use the keys of the format's other programs. Anything without such a
key is stored under ``assay``: for a GGUF file its typed metadata, for a Hugging Face folder its
JSON files, with the vocabulary taken out of the tokenizer.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from assay.errors import ModelError
from assay.formats.apr.apr_file import (
    MERGES,
    OURS,
    VOCABULARY,
    AprFile,
    AprMetadata,
    check_sum,
    read_apr,
)
from assay.formats.architectures import ARCHITECTURES, NUMBERS, Rotary, by_gguf_name, hf_name
from assay.formats.config import JsonFile, ModelConfig, TokenizerConfig
from assay.formats.format import Checkpoint
from assay.formats.gguf.checkpoint import from_metadata
from assay.formats.gguf.file import GgufPair
from assay.formats.tokenizer_json import (
    SplitTokenizer,
    TokenizerJson,
    split_tokenizer,
    vocabulary_of,
    whole_tokenizer,
)
from assay.formats.vocabulary import CONTROL, NORMAL

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from assay.formats.gguf.file import GgufValue
    from assay.formats.tensors import Tensor

NEIGHBOURS, HALVES = 0, 2  # as rope_type
# The format's keys for settings, in older and newer files, by Hugging Face's.
SETTINGS = {
    "hidden_size": ("hidden_size",),
    "num_hidden_layers": ("num_layers", "num_hidden_layers"),
    "num_attention_heads": ("num_heads", "num_attention_heads"),
    "num_key_value_heads": ("num_kv_heads", "num_key_value_heads"),
    "intermediate_size": ("intermediate_size",),
    "max_position_embeddings": ("max_position_embeddings",),
}
# Files that do not name a pre-tokenizer are older than the format's key for it.
PRE_BY_FAMILY = {"qwen2": "qwen2", "qwen3": "qwen2"}
# The format's keys for the tokenizer, by GGUF's.
TOKENIZER = {
    "tokenizer.ggml.tokens": VOCABULARY,
    "tokenizer.ggml.merges": MERGES,
    "tokenizer.ggml.token_type": "tokenizer.token_type",
    "tokenizer.ggml.scores": "tokenizer.scores",
    "tokenizer.ggml.model": "tokenizer.model",
    "tokenizer.ggml.pre": "tokenizer.pre_type",
    "tokenizer.ggml.bos_token_id": "tokenizer.bos_token_id",
    "tokenizer.ggml.eos_token_id": "tokenizer.eos_token_id",
    "tokenizer.ggml.padding_token_id": "tokenizer.padding_token_id",
    "tokenizer.ggml.add_bos_token": "tokenizer.add_bos_token",
    "tokenizer.chat_template": "chat_template",
}


def metadata_of(checkpoint: Checkpoint, name: str, tensors: Sequence[Tensor]) -> AprMetadata:
    """Return the metadata of an .apr file with these tensors."""
    config = checkpoint.config.content
    neighbours = checkpoint.rotary == "neighbours"
    described = {
        "model_type": config.get("model_type", ""),
        "architecture": config.get("model_type", ""),
        "name": name,
        "original_format": "gguf" if checkpoint.gguf or neighbours else "safetensors",
        "param_count": sum(math.prod(tensor.shape) for tensor in tensors),
        "total_size": sum(tensor.nbytes for tensor in tensors),
        "vocab_size": config.get("vocab_size"),
        "head_dim": config.get("head_dim"),
        "rms_norm_eps": config.get("rms_norm_eps"),
        "rope_theta": checkpoint.config.rope_base,
        "rope_type": NEIGHBOURS if neighbours else HALVES,
        "tied_embeddings": checkpoint.config.is_tied,
        **{keys[0]: config.get(setting) for setting, keys in SETTINGS.items()},
    }
    if checkpoint.gguf:
        described |= {TOKENIZER[p.key]: p.value for p in checkpoint.gguf if p.key in TOKENIZER}
        described[OURS] = {"gguf": [_pack(pair) for pair in checkpoint.gguf]}
    else:
        split = split_tokenizer(checkpoint.tokenizer_json)
        described |= _tokenizer_keys(checkpoint)
        described |= {VOCABULARY: split.tokens, MERGES: split.merges}
        described[OURS] = {
            "config": config,
            "generation_config": checkpoint.generation_config.content,
            "tokenizer_config": checkpoint.tokenizer_config.content,
            "tokenizer": split.rest.content,
        }
    return AprMetadata({key: value for key, value in described.items() if value is not None})


def read(path: Path) -> Checkpoint:
    file, where = read_apr(path), str(path)
    metadata = file.metadata
    ours = metadata.get(OURS, {})
    from_hf = metadata.get("original_format") in ("safetensors", "pytorch")
    rotary: Rotary = (
        "neighbours" if metadata.get("rope_type") == NEIGHBOURS and not from_hf else "halves"
    )
    unread = file.unread() if ours else _foreign(file)

    def stored() -> list[Tensor]:
        check_sum(path)
        return unread

    if "config" in ours:
        return Checkpoint(
            config=ModelConfig(ours["config"]),
            generation_config=JsonFile(ours["generation_config"]),
            tokenizer_config=TokenizerConfig(ours["tokenizer_config"]),
            tokenizer_json=kept_tokenizer(metadata),
            rotary=rotary,
            stored=stored,
        )
    words, pairs = as_gguf(metadata, where)
    return from_metadata(words, unread, stored, where, rotary, pairs)


def kept_tokenizer(metadata: AprMetadata) -> TokenizerJson:
    """Return the tokenizer of a model that was a Hugging Face folder."""
    rest = TokenizerJson(metadata.get(OURS)["tokenizer"])
    return whole_tokenizer(SplitTokenizer(rest, metadata.get(VOCABULARY), metadata.get(MERGES)))


def list_gguf_pairs(metadata: AprMetadata) -> tuple[GgufPair, ...]:
    """Return the metadata of the original GGUF file; none if the model was never one."""
    return tuple(_unpack(pair, metadata) for pair in metadata.get(OURS, {}).get("gguf", []))


def as_gguf(metadata: AprMetadata, where: str) -> tuple[dict[str, GgufValue], tuple[GgufPair, ...]]:
    """Return the metadata under GGUF's keys, with those of the original GGUF file, if any."""
    pairs = list_gguf_pairs(metadata)
    return {pair.key: pair.value for pair in pairs} or _gguf_words(metadata, where), pairs


def _foreign(file: AprFile) -> list[Tensor]:
    """Adapt another program's file, which may use GGUF's names or repeat a tied head."""
    named = [dataclasses.replace(t, name=hf_name(t.name) or t.name) for t in file.unread()]
    tied = bool(file.metadata.get("tied_embeddings"))
    return [tensor for tensor in named if not (tied and tensor.name == "lm_head.weight")]


def _pack(pair: GgufPair) -> list[Any]:
    """Leave out a value that is stored under one of the format's keys."""
    types = [pair.key, pair.kind, pair.item_kind]
    return types if pair.key in TOKENIZER else [*types, pair.value]


def _unpack(packed: list[Any], metadata: AprMetadata) -> GgufPair:
    key, kind, item_kind, *value = packed
    return GgufPair(key, kind, value[0] if value else metadata.content[TOKENIZER[key]], item_kind)


def _tokenizer_keys(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the vocabulary under the format's keys, as far as the format allows."""
    keys = {"chat_template": checkpoint.tokenizer_config.default_template}
    try:
        vocabulary = vocabulary_of(checkpoint.tokenizer_json, checkpoint.tokenizer_config, "")
    except ModelError:  # other programs cannot use it; assay stores it whole
        return keys
    return keys | {
        "tokenizer.model": "gpt2",
        "tokenizer.token_type": vocabulary.types,
        "tokenizer.pre_type": vocabulary.pre,
        "tokenizer.bos_token_id": vocabulary.bos,
        "tokenizer.eos_token_id": vocabulary.eos,
        "tokenizer.padding_token_id": vocabulary.padding,
        "tokenizer.add_bos_token": vocabulary.add_bos,
    }


def _gguf_words(metadata: AprMetadata, where: str) -> dict[str, GgufValue]:
    """Return another program's metadata under GGUF's keys."""
    get = metadata.first
    family = str(get("architecture", "model_type") or "").lower()
    name = {known.model_type: known.name for known in ARCHITECTURES}.get(family, family)
    by_gguf_name(name, where)
    words = {ours: get(*SETTINGS[theirs]) for theirs, ours in NUMBERS}
    words["attention.key_length"] = get("head_dim")
    words["attention.layer_norm_rms_epsilon"] = get("rms_norm_eps")
    words["rope.freq_base"] = get("rope_theta")
    entries = {f"{name}.{key}": value for key, value in words.items()}
    entries |= {ours: metadata.get(theirs) for ours, theirs in TOKENIZER.items()}
    entries["general.architecture"] = name
    entries["tokenizer.chat_template"] = get("chat_template", "tokenizer.chat_template")
    kind = str(get("tokenizer.model", "tokenizer.model_type") or "gpt2").lower()
    entries["tokenizer.ggml.model"] = "gpt2" if kind == "bpe" else kind
    entries["tokenizer.ggml.pre"] = metadata.get("tokenizer.pre_type") or PRE_BY_FAMILY.get(
        name, ""
    )
    entries["tokenizer.ggml.token_type"] = metadata.get("tokenizer.token_type") or [
        CONTROL if token.startswith("<|") and token.endswith("|>") else NORMAL
        for token in metadata.get(VOCABULARY, [])
    ]
    return {key: value for key, value in entries.items() if value is not None}
