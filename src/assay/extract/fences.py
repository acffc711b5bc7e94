"""Markdown code fences."""

from __future__ import annotations

import re
from dataclasses import dataclass

FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)$")


@dataclass(frozen=True, slots=True)
class Block:
    """The inside of one fence; not closed when the text ends first."""

    code: str
    closed: bool


def fenced_blocks(text: str) -> list[Block]:
    """All fenced blocks in order. A fence closes with the character and length that opened it."""
    blocks: list[Block] = []
    opened: str | None = None
    inside: list[str] = []
    for line in text.split("\n"):
        fence = FENCE.match(line)
        if opened is None:
            if fence:
                opened, inside = fence[1], []
        elif fence and fence[1].startswith(opened) and not fence[2].strip():
            blocks.append(Block(_joined(inside), closed=True))
            opened = None
        else:
            inside.append(line)
    if opened is not None:
        blocks.append(Block(_joined(inside), closed=False))
    return blocks


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
