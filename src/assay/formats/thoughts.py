"""Recognise how models mark their thoughts before an answer."""

from __future__ import annotations

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
MARKS = frozenset(mark for pair in TAGS for mark in pair) | {"<|channel|>", "<|message|>"}


def has_thoughts(template: str) -> bool:
    """Return whether a chat template has thoughts: its model was trained to think."""
    return any(opened in template or closed in template for opened, closed in TAGS)
