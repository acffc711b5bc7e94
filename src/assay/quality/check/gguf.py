"""Open GGUF files for a check."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.errors import ModelError
from assay.formats.architectures import ARCHITECTURES, NUMBERS, config_from_gguf
from assay.formats.gguf.checkpoint import vocabulary_in
from assay.formats.gguf.file import GgufHeader, read_header
from assay.formats.tensors import BLOCKS, GGML_TYPES
from assay.formats.tokenizer_json import tokenizer_config, tokenizer_json
from assay.formats.vocabulary import PRE_TOKENIZERS
from assay.quality.check import contents
from assay.quality.check.shapes import ShapeSettings, settings_of

MARKS = ("bos", "eos", "unknown", "padding")


def open_gguf(path: Path) -> contents.Contents:
    header = read_header(path, arrays=True, whole=False)
    for key, count in Counter(pair.key for pair in header.pairs).items():
        if count > 1:
            raise ModelError(f"{path}: has {key} {count} times. Download it again.")
    metadata = header.metadata

    def whole() -> None:
        if (count := metadata.get("split.count", 0)) and count != 1:
            raise contents.SkippedError(
                f"this is one of {count} parts; join them with llama-gguf-split --merge"
            )

    def settings(shapes: Mapping[str, tuple[int, ...]]) -> ShapeSettings:
        whole()
        return gguf_settings(metadata, shapes, str(path))

    def tokenizer() -> contents.Tokenizer:
        whole()
        return gguf_tokenizer(metadata, str(path))

    return contents.Contents(
        summary=f"version {header.version}, {len(header.pairs)} entries of metadata",
        parts=lambda: [
            contents.TensorPart(
                t.name, GGML_TYPES.get(t.kind, ("",))[0], t.shape, path, t.start, t.size
            )
            for t in header.tensors
        ],
        faults=lambda parts: _faults(parts, header),
        settings=settings,
        tokenizer=tokenizer,
        template=lambda: gguf_template(metadata),
    )


def gguf_settings(
    metadata: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
    where: str,
    rows: int | None = None,
) -> ShapeSettings:
    """Return the settings. The vocabulary has ``rows`` entries, or as many as the tokenizer."""
    family = metadata.get("general.architecture")
    if family is None:
        raise ModelError("the metadata has no general.architecture")
    if family not in {known.name for known in ARCHITECTURES}:
        raise contents.SkippedError(f"unknown tensor shapes for the model family '{family}'")
    if metadata.get(f"{family}.expert_count"):
        raise contents.SkippedError("unknown tensor shapes for mixtures of experts")
    for _, key in NUMBERS:
        value = metadata.get(f"{family}.{key}")
        if isinstance(value, list) and len(set(value)) > 1:
            raise contents.SkippedError(f"{family}.{key} differs from layer to layer")
    config = config_from_gguf(metadata, shapes, where).content
    tokens = metadata.get("tokenizer.ggml.tokens")
    if rows is None and isinstance(tokens, list):
        rows = len(tokens)
    return settings_of(config if rows is None else {**config, "vocab_size": rows})


def gguf_tokenizer(metadata: Mapping[str, Any], where: str) -> contents.Tokenizer:
    """Check the vocabulary itself, then return the library's tokenizer if its kind is known."""
    get = {k.removeprefix("tokenizer.ggml."): v for k, v in metadata.items()}.get
    kind, tokens = get("model"), get("tokens")
    if kind is None or not isinstance(tokens, list) or not tokens:
        raise ModelError("there is no tokenizer (no tokenizer.ggml.model, or no tokens)")
    if not all(isinstance(token, str) for token in tokens):
        raise ModelError("there are tokens that are not strings")
    for name in ("token_type", "scores"):
        if isinstance(entries := get(name), list) and len(entries) != len(tokens):
            raise ModelError(
                f"there are {len(tokens):,} tokens, but {len(entries):,} entries in {name}"
            )
    for name in MARKS:
        number = get(f"{name}_token_id")
        # In files, the largest possible number means "none".
        if isinstance(number, int) and not 0 <= number < len(tokens) and number != 0xFFFFFFFF:
            raise ModelError(
                f"{name}_token_id is {number}, but there are only {len(tokens):,} tokens"
            )
    if kind != "gpt2":
        raise contents.EngineOnlyError(f"only llama.cpp can read a tokenizer of the kind '{kind}'")
    if not isinstance(get("merges"), list):
        raise ModelError("there are no merges (tokenizer.ggml.merges is missing)")
    pre = get("pre", "default")
    if not any(pre in known.names for known in PRE_TOKENIZERS):
        raise contents.EngineOnlyError(f"only llama.cpp has the pre-tokenizer '{pre}'")
    content = tokenizer_json(vocabulary_in(metadata, where), where).content
    return contents.Tokenizer(content=json.dumps(content))


def gguf_template(metadata: Mapping[str, Any]) -> contents.Template:
    text = metadata.get("tokenizer.chat_template")
    if not text:
        raise contents.SkippedError("a base model: it has no chat template")
    if not isinstance(text, str):
        raise ModelError("the chat template is not a string")
    try:
        marks = tokenizer_config(vocabulary_in(metadata, ""), "").content
    except ModelError:  # another kind of tokenizer
        tokens, marks = metadata.get("tokenizer.ggml.tokens"), {}
        for name in ("bos", "eos"):
            number = metadata.get(f"tokenizer.ggml.{name}_token_id")
            if isinstance(tokens, list) and isinstance(number, int) and number < len(tokens):
                marks[f"{name}_token"] = tokens[number]
    return contents.Template(text, {k: v for k, v in marks.items() if isinstance(v, str)})


def _faults(parts: Sequence[contents.TensorPart], header: GgufHeader) -> Iterator[str]:
    yield from contents.common_faults(parts)
    for part in parts:
        width = part.shape[-1] if part.shape else 1
        if part.encoding and width % BLOCKS[part.encoding][0]:
            yield f"{part.name} has rows of {width:,}, which is not a whole number of blocks"
    # The sizes are computed from the shapes. They are right if there are no gaps.
    at = min((part.start for part in parts), default=0)
    for part in parts:
        if part.start != at:
            yield f"{part.name} starts at byte {part.start:,}, but the one before ends at {at:,}"
            return
        at += part.size + -part.size % header.alignment
    if parts and (rest := parts[-1].file.stat().st_size - at) > 0:
        yield f"the last {rest:,} bytes of the file belong to no tensor"
