"""Read checkpoints and fill-in-the-middle tokens of GGUF files; build the metadata of new ones."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from assay.errors import ModelError
from assay.formats.architectures import (
    NUMBERS,
    by_gguf_name,
    by_model_type,
    config_from_gguf,
    hf_name,
)
from assay.formats.config import JsonFile, as_number
from assay.formats.format import Checkpoint
from assay.formats.gguf.file import ARRAY, STRING, GgufPair, GgufTensor, read_header
from assay.formats.marks import Gap, GapTokens, build_gap, find_gap
from assay.formats.rope import (
    FLOAT32,
    FREQUENCIES,
    UINT32,
    gguf_scaling,
    scaling_from_gguf,
)
from assay.formats.tensors import GGML_TYPES, Tensor, decode, has_whole_rows, map_file, part_of
from assay.formats.tokenizer_json import (
    FILLER,
    tokenizer_config,
    tokenizer_json,
    vocabulary_of,
)
from assay.formats.vocabulary import NORMAL, UNUSED, Vocabulary, pre_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from assay.formats.architectures import Rotary
    from assay.formats.gguf.file import GgufValue


INT32, BOOL = 5, 7
# GGUF's number for a file that is mostly of one encoding.
FILE_TYPES = {
    "F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10,
    "Q3_K": 12, "Q4_K": 15, "Q5_K": 17, "Q6_K": 18, "BF16": 32,
}  # fmt: skip
TOKENS = "tokenizer.ggml.tokens"
# Each with its name in older files.
KEYS = (
    ("tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"),
    ("tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"),
    ("tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"),
)


def read(path: Path) -> Checkpoint:
    header = read_header(path, arrays=True)
    data = map_file(path)
    parts = header.metadata.get("split.count", 1)
    if isinstance(parts, int) and parts > 1:
        raise ModelError(
            f"{path}: is one of {parts} parts. Join them with llama-gguf-split --merge."
        )
    tensors = [_tensor(tensor, data, path) for tensor in header.tensors]
    architecture = by_gguf_name(str(header.metadata.get("general.architecture", "")), str(path))
    return from_metadata(
        header.metadata, tensors, lambda: tensors, str(path), architecture.rotary, header.pairs
    )


def from_metadata(
    metadata: Mapping[str, GgufValue],
    unread: Sequence[Tensor],
    stored: Callable[[], list[Tensor]],
    where: str,
    rotary: Rotary,
    pairs: tuple[GgufPair, ...] = (),
) -> Checkpoint:
    """Return a checkpoint of GGUF's metadata from any source; ``unread`` have HF's names."""
    tensors = {tensor.name: tensor for tensor in unread}
    config = config_from_gguf(metadata, {n: t.shape for n, t in tensors.items()}, where)
    divisors = decode(tensors[FREQUENCIES]).values.tolist() if FREQUENCIES in tensors else []
    prefix = str(metadata["general.architecture"])
    if scaling := scaling_from_gguf(metadata, prefix, divisors, config.rope_base, where):
        config = config.replace(rope_scaling=scaling.to_json())
    vocabulary = vocabulary_in(metadata, where)
    ends = vocabulary.ends()
    tokens = {key: value for key, value in config.content.items() if key.endswith("_token_id")}
    return Checkpoint(
        config=config,
        generation_config=JsonFile({**tokens, **({"eos_token_id": ends} if ends else {})}),
        tokenizer_json=tokenizer_json(vocabulary, where),
        tokenizer_config=tokenizer_config(
            vocabulary, str(metadata.get("tokenizer.chat_template", ""))
        ),
        rotary=rotary,
        stored=stored,
        gguf=pairs,
    )


def file_type(tensors: Sequence[Tensor]) -> int:
    """Return GGUF's number for the encoding that most matrices have."""
    matrices = Counter(tensor.encoding for tensor in tensors if len(tensor.shape) > 1)
    usual = matrices.most_common(1)
    return FILE_TYPES.get(usual[0][0], 0) if usual else 0


def pairs_of(checkpoint: Checkpoint, name: str, file_type: int, where: str) -> list[GgufPair]:
    """Return the metadata of a GGUF file for a model that was never one."""
    config = checkpoint.config
    architecture = by_model_type(config.model_type, where).name
    heads = config.key_value_heads or config.need("num_attention_heads", where)
    settings = {"num_key_value_heads": heads}
    for setting in (*dict(NUMBERS), "vocab_size"):
        if setting not in settings:
            settings[setting] = config.need(setting, where)
    vocabulary = vocabulary_of(checkpoint.tokenizer_json, checkpoint.tokenizer_config, where)
    pairs = [
        GgufPair("general.architecture", STRING, architecture),
        GgufPair("general.type", STRING, "model"),
        GgufPair("general.name", STRING, name),
        GgufPair("general.file_type", UINT32, file_type),
    ]
    head = config.head_size(where)
    numbers = {ours: settings[theirs] for theirs, ours in NUMBERS}
    numbers |= {"vocab_size": settings["vocab_size"], "rope.dimension_count": head}
    numbers |= {"attention.key_length": head, "attention.value_length": head}
    pairs += [GgufPair(f"{architecture}.{k}", UINT32, int(v)) for k, v in numbers.items()]
    floats = {
        "attention.layer_norm_rms_epsilon": config.content.get("rms_norm_eps", 1e-6),
        "rope.freq_base": config.rope_base,
    }
    pairs += [GgufPair(f"{architecture}.{k}", FLOAT32, as_number(v)) for k, v in floats.items()]
    pairs += gguf_scaling(config.rope_scaling, architecture, where)
    return pairs + _tokenizer_pairs(vocabulary, checkpoint, settings["vocab_size"])


def _tokenizer_pairs(vocabulary: Vocabulary, checkpoint: Checkpoint, size: int) -> list[GgufPair]:
    # llama.cpp needs a token for each row of the embedding.
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
    if template := checkpoint.tokenizer_config.default_template:
        pairs.append(GgufPair("tokenizer.chat_template", STRING, template))
    return pairs


def vocabulary_in(metadata: Mapping[str, GgufValue], where: str) -> Vocabulary:
    """Read the vocabulary in GGUF's metadata. Raise ModelError if it is damaged or unknown."""
    get = {k.removeprefix("tokenizer.ggml."): v for k, v in metadata.items()}.get
    if (model := get("model")) != "gpt2":
        raise ModelError(
            f"{where}: has a tokenizer of the kind '{model}'. Only byte-level BPE ('gpt2') can be "
            "read here. Run the GGUF file with llama.cpp."
        )
    tokens, merges = (_texts(get(name), where) for name in ("tokens", "merges"))
    types = get("token_type") or [NORMAL] * len(tokens)
    if not isinstance(types, list) or len(types) != len(tokens) or not tokens:
        count = len(types) if isinstance(types, list) else 0
        raise ModelError(
            f"{where}: has {len(tokens):,} tokens and {count:,} types of tokens. "
            "Download or convert it again."
        )
    pre = str(get("pre", "default"))
    marks = {name: get(f"{name}_token_id") for name in ("bos", "eos", "unknown", "padding")}
    return Vocabulary(
        tokens=tokens,
        merges=merges,
        types=types,
        pre=pre,
        add_bos=bool(get("add_bos_token", pre_tokenizer(pre, where).add_bos)),
        add_eos=bool(get("add_eos_token", False)),
        **{
            name: number
            for name, number in marks.items()
            if isinstance(number, int) and 0 <= number < len(tokens)
        },
    )


def _texts(value: GgufValue | None, where: str) -> list[str]:
    """Return an array of texts, empty if there is none. Raise ModelError if it is anything else."""
    texts = [] if value is None else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ModelError(f"{where}: has tokens that are not text. Download or convert it again.")
    return texts


def _tensor(tensor: GgufTensor, data: memoryview, path: Path) -> Tensor:
    name = tensor.name if tensor.name == FREQUENCIES else hf_name(tensor.name)
    if name is None or tensor.kind not in GGML_TYPES:
        what = f"the type {tensor.kind}" if name else "a name"
        raise ModelError(
            f"{path}: the tensor {tensor.name} has {what} that is not known here. Run it with "
            "llama.cpp."
        )
    renamed = Tensor(
        name,
        GGML_TYPES[tensor.kind][0],
        tensor.shape,
        tensor.size,
        part_of(data, tensor.start, tensor.size),
    )
    if not has_whole_rows(renamed):
        raise ModelError(
            f"{path}: the tensor {tensor.name} has incomplete blocks. Download it again."
        )
    return renamed


def read_gap(path: Path) -> Gap | None:
    """Return how the model marks a gap, or None if it has no tokens for that.

    The file's keys name the tokens. Without keys they are found by their known names.
    """
    return gap_of(read_header(path, arrays=True).metadata)


def gap_of(metadata: Mapping[str, GgufValue]) -> Gap | None:
    """Return how a model with this metadata marks a gap, or None."""
    listed = metadata.get(TOKENS)
    tokens = [str(token) for token in listed] if isinstance(listed, list) else []
    vocabulary = {token: number for number, token in enumerate(tokens)}
    named = [_named(metadata, names, tokens) for names in KEYS]
    if all(named):
        prefix, suffix, middle = named
        return build_gap(GapTokens(prefix, suffix, middle), vocabulary)
    return find_gap(vocabulary)


def _named(metadata: Mapping[str, GgufValue], names: tuple[str, ...], tokens: list[str]) -> str:
    """Return the token whose number one of these keys has, or an empty text."""
    for name in names:
        number = metadata.get(name)
        if isinstance(number, int) and 0 <= number < len(tokens):
            return tokens[number]
    return ""
