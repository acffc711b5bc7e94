"""Tokenizers between GGUF's vocabulary, merges and pre-tokenizer name, and tokenizer.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.errors import ModelError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 1, 2, 3, 4, 5
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}


def _split(pattern: str) -> dict[str, Any]:
    return {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }


def _sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(steps)}


def _words(digits: str) -> dict[str, Any]:
    """The pattern that Llama 3 began with; ``digits`` says how many stay together."""
    return _sequence(
        _split(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
            + digits
            + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        {**BYTE_LEVEL, "use_regex": False},
    )


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """How llama.cpp splits a text under one or more names of ``tokenizer.ggml.pre``."""

    names: tuple[str, ...]
    json: dict[str, Any]
    ignore_merges: bool = False  # a whole word in the vocabulary is a token, merges or not
    add_bos: bool = False  # where the file does not say


GPT2 = {**BYTE_LEVEL, "use_regex": True}
PRE_TOKENIZERS = (
    PreTokenizer(
        ("smollm", "starcoder", "refact", "command-r"),
        _sequence({"type": "Digits", "individual_digits": True}, GPT2),
    ),
    PreTokenizer(("qwen2", "deepseek-r1-qwen"), _words(r"\p{N}")),
    PreTokenizer(
        ("llama-bpe", "llama3", "llama-v3"), _words(r"\p{N}{1,3}"), ignore_merges=True, add_bos=True
    ),
    PreTokenizer(("gpt-2", "phi-2", "olmo"), GPT2),
    PreTokenizer(
        ("default",),
        _sequence(
            _split(r"[\p{P}\$\+<=>\^~\|]+"),
            _split(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"),
            _split(r"\p{N}+"),
            _split("[0-9][0-9][0-9]"),
            {**BYTE_LEVEL, "use_regex": False},
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A byte-level BPE tokenizer as GGUF and .apr files hold it: by token number."""

    tokens: list[str]
    merges: list[str]
    types: list[int]
    pre: str
    bos: int | None = None
    eos: int | None = None
    unknown: int | None = None
    padding: int | None = None
    add_bos: bool | None = None
    add_eos: bool = False


def tokenizer_json(vocabulary: Vocabulary, where: str) -> dict[str, Any]:
    """What the ``tokenizers`` library reads; gives the ids that llama.cpp gives."""
    pre = _pre_tokenizer(vocabulary.pre, where)
    types = vocabulary.types or [NORMAL] * len(vocabulary.tokens)
    typed = list(zip(vocabulary.tokens, types, strict=True))
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": number,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": kind != USER_DEFINED,
            }
            for number, (token, kind) in enumerate(typed)
            if kind in (UNKNOWN, CONTROL, USER_DEFINED)
        ],
        "normalizer": None,
        "pre_tokenizer": pre.json,
        "post_processor": _post_processor(vocabulary, adds_bos(vocabulary, where)),
        "decoder": GPT2,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": pre.ignore_merges,
            "vocab": {
                token: number for number, (token, kind) in enumerate(typed) if kind != UNUSED
            },
            "merges": vocabulary.merges,
        },
    }


def tokenizer_config(vocabulary: Vocabulary, where: str, chat_template: str) -> dict[str, Any]:
    """What transformers needs beside it."""
    special = {
        "bos_token": vocabulary.bos,
        "eos_token": vocabulary.eos,
        "unk_token": vocabulary.unknown,
        "pad_token": vocabulary.padding,
    }
    config: dict[str, Any] = {
        name: vocabulary.tokens[number]
        for name, number in special.items()
        if number is not None and 0 <= number < len(vocabulary.tokens)
    }
    config["add_bos_token"] = adds_bos(vocabulary, where)
    config["add_eos_token"] = vocabulary.add_eos
    config["clean_up_tokenization_spaces"] = False
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    if chat_template:
        config["chat_template"] = chat_template
    return config


def adds_bos(vocabulary: Vocabulary, where: str) -> bool:
    if vocabulary.add_bos is None:
        return _pre_tokenizer(vocabulary.pre, where).add_bos
    return vocabulary.add_bos


def _pre_tokenizer(name: str, where: str) -> PreTokenizer:
    for known in PRE_TOKENIZERS:
        if name in known.names:
            return known
    names = ", ".join(name for known in PRE_TOKENIZERS for name in known.names)
    raise ModelError(
        f"{where} splits text by the pre-tokenizer '{name}', which is not known here ({names} "
        "are): run the GGUF file with llama.cpp"
    )


def _post_processor(vocabulary: Vocabulary, add_bos: bool) -> dict[str, Any] | None:
    before = vocabulary.bos if add_bos else None
    after = vocabulary.eos if vocabulary.add_eos else None
    if before is None and after is None:
        return None
    text: dict[str, Any] = {"Sequence": {"id": "A", "type_id": 0}}
    tokens = {number: vocabulary.tokens[number] for number in (before, after) if number is not None}

    def special(number: int | None) -> list[dict[str, Any]]:
        if number is None:
            return []
        return [{"SpecialToken": {"id": tokens[number], "type_id": 0}}]

    single = [*special(before), text, *special(after)]
    other = [*special(before), {"Sequence": {"id": "B", "type_id": 0}}, *special(after)]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, *other],
        "special_tokens": {
            token: {"id": token, "ids": [number], "tokens": [token]}
            for number, token in tokens.items()
        },
    }
