"""Know how models mark their thoughts, and the gap that they fill in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

TAGS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel|>analysis", "<|channel|>final"),
)
# Tokens that a tokenizer may declare special: the marks themselves, and those of channels.
THOUGHT_MARKS = frozenset(mark for pair in TAGS for mark in pair) | {"<|channel|>", "<|message|>"}
# After the middle some models write another token than that at the end of a text. Those that were
# tuned for a chat write the one of their base model.
ENDS = (
    "<EOT>", "▁<EOT>", "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<|file_sep|>", "<file_sep>",
    "<|file_separator|>", "<|repo_name|>", "<|endoftext|>", "<｜end▁of▁sentence｜>",
)  # fmt: skip


def thought_tags(template: str) -> tuple[str, str] | None:
    """Return the marks around a thought in a chat template, or None.

    A model whose template has them was trained to think.
    """
    return next((pair for pair in TAGS if pair[0] in template or pair[1] in template), None)


@dataclass(frozen=True, slots=True)
class GapTokens:
    """The tokens before prefix, suffix and middle, as texts of a vocabulary.

    Models are trained on code whose middle was moved to the end. Special tokens mark the three
    parts, and every family of models has its own.
    """

    prefix: str
    suffix: str
    middle: str

    def __str__(self) -> str:
        return f"{self.prefix} {self.suffix} {self.middle}"

    def __iter__(self) -> Iterator[str]:
        return iter((self.prefix, self.suffix, self.middle))

    def mark(self, prefix: str, suffix: str) -> str:
        """Return both parts in one text, as the model sees them."""
        return f"{self.prefix}{prefix}{self.suffix}{suffix}{self.middle}"


# In llama.cpp's order, which finds the tokens of a file without keys for them by these names.
FORMS = (
    GapTokens("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),  # Qwen, CodeGemma
    GapTokens("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),  # SantaCoder
    GapTokens("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # StarCoder, Granite
    GapTokens("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    GapTokens("<PRE>", "<SUF>", "<MID>"),
    GapTokens("▁<PRE>", "▁<SUF>", "▁<MID>"),  # CodeLlama
    GapTokens("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),  # GLM
    GapTokens("<|prefix|>", "<|suffix|>", "<|middle|>"),
)
GAP_MARKS = (*(token for form in FORMS for token in form), *ENDS)


@dataclass(frozen=True, slots=True)
class Gap:
    """A model's tokens around a gap, their numbers, and the tokens that end the middle."""

    tokens: GapTokens
    ids: tuple[int, int, int]
    ends: tuple[int, ...] = ()
    end_texts: tuple[str, ...] = ()


def find_gap(vocabulary: Mapping[str, int]) -> Gap | None:
    """Return the first known form whose tokens are all in a vocabulary, or None."""
    for form in FORMS:
        if all(token in vocabulary for token in form):
            return build_gap(form, vocabulary)
    return None


def build_gap(tokens: GapTokens, vocabulary: Mapping[str, int]) -> Gap:
    """Return how a model with this vocabulary marks a gap with these tokens."""
    prefix, suffix, middle = (vocabulary[token] for token in tokens)
    ends = [text for text in dict.fromkeys((*GAP_MARKS, *tokens)) if text in vocabulary]
    return Gap(tokens, (prefix, suffix, middle), tuple(vocabulary[e] for e in ends), tuple(ends))


def cut_at(text: str, words: Iterable[str]) -> tuple[str, bool]:
    """Return the text before the first of these words, and whether there was one."""
    ends = [at for word in words if (at := text.find(word)) >= 0]
    return text[: min(ends)] if ends else text, bool(ends)


def middle_of(text: str, prefix: str, suffix: str) -> str:
    """Return the middle, from a text that is the middle alone or the whole program.

    Files of recorded solutions have whole programs.
    """
    longer = len(text) >= len(prefix) + len(suffix)
    if longer and text.startswith(prefix) and text.endswith(suffix):
        return text[len(prefix) : len(text) - len(suffix)]
    return cut_at(text, GAP_MARKS)[0]  # an engine may have left special tokens in it


def describe_missing(model: str) -> str:
    """Return the error for a model that cannot fill in."""
    return (
        f"{model}: has no fill-in-the-middle tokens, so it cannot fill in code. Choose a model "
        "that was trained for it, such as Qwen2.5-Coder, StarCoder2 or DeepSeek-Coder."
    )
