"""Represent byte-level BPE vocabularies of GGUF and .apr files, and how they split a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.errors import ModelError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 1, 2, 3, 4, 5
# Tokens that end an answer in any vocabulary: llama.cpp's list.
ENDS = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>",
    "<|eom_id|>", "<EOT>", "_<EOT>", "<｜end▁of▁sentence｜>", "<end_of_utterance>",
    "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "<|file_sep|>",
    "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>",
}  # fmt: skip
DIGITS = {"type": "Digits", "individual_digits": True}  # cuts a text around every digit


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens and their types by number. ``pre`` names the rule that splits a text into words."""

    tokens: list[str]
    merges: list[str]
    types: list[int]
    pre: str
    bos: int | None = None
    eos: int | None = None
    unknown: int | None = None
    padding: int | None = None
    add_bos: bool = False
    add_eos: bool = False

    def ends(self) -> list[int]:
        """Return the tokens that end an answer, the usual one first."""
        usual = [] if self.eos is None else [self.eos]
        others = (
            number
            for number, (token, kind) in enumerate(zip(self.tokens, self.types, strict=True))
            if token in ENDS and kind in (CONTROL, USER_DEFINED) and number != self.eos
        )
        return [*usual, *others]


# Steps that split a text, in the form of the tokenizers library.


def _split(pattern: str) -> dict[str, Any]:
    """Return the step that cuts a text at every match."""
    return {
        "type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False,
    }  # fmt: skip


def _byte_level(*, use_regex: bool) -> dict[str, Any]:
    """Return the step that writes bytes as letters, and first cuts a text as GPT-2 does."""
    return {
        "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
        "use_regex": use_regex,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """The way llama.cpp splits a text under these names of ``tokenizer.ggml.pre``."""

    names: tuple[str, ...]
    steps: tuple[dict[str, Any], ...]
    ignore_merges: bool = False  # a whole word in the vocabulary is a token, merges or not
    add_bos: bool = False  # if the file does not say

    def to_json(self) -> dict[str, Any]:
        """Return it in the form of the tokenizers library."""
        steps = list(self.steps)
        return {"type": "Sequence", "pretokenizers": steps} if len(steps) > 1 else steps[0]


def _words(digits: str) -> tuple[dict[str, Any], ...]:
    """Return the pattern that Llama 3 introduced. ``digits`` says how many stay together."""
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
        + digits
        + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    return _split(pattern), _byte_level(use_regex=False)


GPT2 = _byte_level(use_regex=True)
PRE_TOKENIZERS = (
    PreTokenizer(("smollm", "starcoder", "refact", "command-r"), (DIGITS, GPT2)),
    PreTokenizer(("qwen2", "deepseek-r1-qwen"), _words(r"\p{N}")),
    PreTokenizer(
        ("llama-bpe", "llama3", "llama-v3"), _words(r"\p{N}{1,3}"), ignore_merges=True, add_bos=True
    ),
    PreTokenizer(("gpt-2", "phi-2", "olmo"), (GPT2,)),
    PreTokenizer(
        ("default",),
        (
            _split(r"[\p{P}\$\+<=>\^~\|]+"),
            _split(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"),
            _split(r"\p{N}+"),
            _split("[0-9][0-9][0-9]"),
            _byte_level(use_regex=False),
        ),
    ),
)


def pre_tokenizer(name: str, where: str) -> PreTokenizer:
    for known in PRE_TOKENIZERS:
        if name in known.names:
            return known
    names = ", ".join(name for known in PRE_TOKENIZERS for name in known.names)
    raise ModelError(
        f"{where}: has the unknown pre-tokenizer '{name}' (known: {names}). "
        "Run the GGUF file with llama.cpp."
    )
