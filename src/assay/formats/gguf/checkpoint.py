"""Checkpoints out of GGUF files, and the metadata of new ones."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

from assay.errors import ModelError
from assay.formats.architectures import (
    NUMBERS,
    by_gguf_name,
    by_model_type,
    config_from_gguf,
    hf_name,
)
from assay.formats.checkpoint import Checkpoint
from assay.formats.gguf.file import ARRAY, STRING, GgufPair, GgufTensor, read_header
from assay.formats.rope import (
    FLOAT32,
    FREQUENCIES,
    UINT32,
    base_and_scaling,
    gguf_scaling,
    scaling_from_gguf,
)
from assay.formats.tensors import GGML_TYPES, Tensor, decode, has_whole_rows
from assay.formats.tokenizer_json import (
    FILLER,
    default_template,
    tokenizer_config,
    tokenizer_json,
    vocabulary_of,
)
from assay.formats.vocabulary import NORMAL, UNUSED, Vocabulary, pre_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from assay.formats.architectures import Rotary

INT32, BOOL = 5, 7


def read(path: Path) -> Checkpoint:
    header = read_header(path, arrays=True)
    with path.open("rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    if (parts := header.metadata.get("split.count", 1)) > 1:
        raise ModelError(f"{path} is one of {parts} parts: join them with llama-gguf-split --merge")
    tensors = [_tensor(tensor, data, path) for tensor in header.tensors]
    architecture = by_gguf_name(str(header.metadata.get("general.architecture", "")), str(path))
    return from_metadata(
        header.metadata, tensors, lambda: tensors, str(path), architecture.rotary, header.pairs
    )


def from_metadata(
    metadata: Mapping[str, Any],
    unread: Sequence[Tensor],
    stored: Callable[[], list[Tensor]],
    where: str,
    rotary: Rotary,
    pairs: tuple[GgufPair, ...] = (),
) -> Checkpoint:
    """A checkpoint of GGUF's metadata, wherever they are from; ``unread`` have HF's names."""
    tensors = {tensor.name: tensor for tensor in unread}
    config = config_from_gguf(metadata, {n: t.shape for n, t in tensors.items()}, where)
    divisors = decode(tensors[FREQUENCIES]).values.tolist() if FREQUENCIES in tensors else []
    prefix = str(metadata["general.architecture"])
    if scaling := scaling_from_gguf(metadata, prefix, divisors, config, where):
        config["rope_scaling"] = scaling
    vocabulary = vocabulary_in(metadata, where)
    ends = vocabulary.ends()
    tokens = {key: value for key, value in config.items() if key.endswith("_token_id")}
    return Checkpoint(
        config=config,
        generation_config={**tokens, **({"eos_token_id": ends} if ends else {})},
        tokenizer_json=tokenizer_json(vocabulary, where),
        tokenizer_config=tokenizer_config(
            vocabulary, str(metadata.get("tokenizer.chat_template", ""))
        ),
        rotary=rotary,
        stored=stored,
        gguf=pairs,
    )


def pairs_of(checkpoint: Checkpoint, name: str, file_type: int, where: str) -> list[GgufPair]:
    """The metadata of a GGUF file for a model that never was one."""
    config = checkpoint.config
    architecture = by_model_type(str(config.get("model_type", "")), where).name
    for setting in (*dict(NUMBERS), "vocab_size"):
        if setting != "num_key_value_heads" and not isinstance(config.get(setting), int):
            raise ModelError(f"{where} does not say its {setting}: fetch or convert it again")
    vocabulary = vocabulary_of(checkpoint.tokenizer_json, checkpoint.tokenizer_config, where)
    pairs = [
        GgufPair("general.architecture", STRING, architecture),
        GgufPair("general.type", STRING, "model"),
        GgufPair("general.name", STRING, name),
        GgufPair("general.file_type", UINT32, file_type),
    ]
    settings = {
        **config,
        "num_key_value_heads": config.get("num_key_value_heads") or config["num_attention_heads"],
    }
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    numbers = {ours: settings[theirs] for theirs, ours in NUMBERS}
    numbers |= {"vocab_size": config["vocab_size"], "rope.dimension_count": head}
    numbers |= {"attention.key_length": head, "attention.value_length": head}
    pairs += [GgufPair(f"{architecture}.{k}", UINT32, int(v)) for k, v in numbers.items()]
    floats = {
        "attention.layer_norm_rms_epsilon": config.get("rms_norm_eps", 1e-6),
        "rope.freq_base": base_and_scaling(config)[0],
    }
    pairs += [GgufPair(f"{architecture}.{k}", FLOAT32, float(v)) for k, v in floats.items()]
    pairs += gguf_scaling(config, architecture, where)
    return pairs + _tokenizer_pairs(vocabulary, checkpoint, config["vocab_size"])


def _tokenizer_pairs(vocabulary: Vocabulary, checkpoint: Checkpoint, size: int) -> list[GgufPair]:
    # llama.cpp wants a token for each row of the embedding.
    more = range(len(vocabulary.tokens), size)
    tokens = vocabulary.tokens + [FILLER.format(number) for number in more]
    types = vocabulary.types + [UNUSED for _ in more]
    pairs = [
        GgufPair("tokenizer.ggml.model", STRING, "gpt2"),
        GgufPair("tokenizer.ggml.pre", STRING, vocabulary.pre),
        GgufPair("tokenizer.ggml.tokens", ARRAY, tokens, STRING),
        GgufPair("tokenizer.ggml.token_type", ARRAY, types, INT32),
        GgufPair("tokenizer.ggml.merges", ARRAY, vocabulary.merges, STRING),
        GgufPair("tokenizer.ggml.add_bos_token", BOOL, vocabulary.add_bos),
        GgufPair("tokenizer.ggml.add_eos_token", BOOL, vocabulary.add_eos),
    ]
    for key in ("bos", "eos", "unknown", "padding"):
        if (number := getattr(vocabulary, key)) is not None:
            pairs.append(GgufPair(f"tokenizer.ggml.{key}_token_id", UINT32, number))
    if template := default_template(checkpoint.tokenizer_config):
        pairs.append(GgufPair("tokenizer.chat_template", STRING, template))
    return pairs


def vocabulary_in(metadata: Mapping[str, Any], where: str) -> Vocabulary:
    """Of GGUF's metadata; ModelError: damaged, or of a kind that is not known here."""
    get = {k.removeprefix("tokenizer.ggml."): v for k, v in metadata.items()}.get
    if (model := get("model")) != "gpt2":
        raise ModelError(
            f"{where} has a tokenizer of the kind '{model}', only byte-level BPE ('gpt2') can be "
            "read here: run the GGUF file with llama.cpp"
        )
    tokens, pre = get("tokens", []), get("pre", "default")
    numbers = {name: get(f"{name}_token_id") for name in ("bos", "eos", "unknown", "padding")}
    found = Vocabulary(
        tokens=tokens,
        merges=get("merges", []),
        types=get("token_type") or [NORMAL] * len(tokens),
        pre=pre,
        add_bos=get("add_bos_token", pre_tokenizer(pre, where).add_bos),
        add_eos=get("add_eos_token", False),
        **{name: number for name, number in numbers.items() if _is_token(number, tokens)},
    )
    if not all(isinstance(text, str) for text in tokens + found.merges):
        raise ModelError(f"{where} has tokens that are no text: fetch or convert it again")
    if len(found.types) != len(tokens) or not tokens:
        raise ModelError(
            f"{where} has {len(tokens):,} tokens and {len(found.types):,} types of tokens: fetch "
            "or convert it again"
        )
    return found


def _is_token(number: Any, tokens: list[str]) -> bool:
    return isinstance(number, int) and 0 <= number < len(tokens)


def _tensor(tensor: GgufTensor, data: memoryview, path: Path) -> Tensor:
    name = tensor.name if tensor.name == FREQUENCIES else hf_name(tensor.name)
    if name is None or tensor.kind not in GGML_TYPES:
        what = f"the type {tensor.kind}" if name else "a name"
        raise ModelError(
            f"{path} has a tensor {tensor.name} of {what} that is not known here: run it with "
            "llama.cpp"
        )
    found = Tensor(
        name,
        GGML_TYPES[tensor.kind][0],
        tensor.shape,
        tensor.size,
        lambda: data[tensor.start : tensor.start + tensor.size],
    )
    if not has_whole_rows(found):
        raise ModelError(f"{path} has a tensor {tensor.name} with parts of blocks: fetch it again")
    return found
