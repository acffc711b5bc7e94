"""Remove a model's reasoning before its answer."""

from __future__ import annotations

from assay.extract.rule import At, Rule, extraction_rules
from assay.formats.marks import TAGS


def without_thinking(text: str) -> str:
    """Return the text outside the reasoning. After reasoning that is cut off there is none."""
    for opened, closed in TAGS:
        if opened in text or closed in text:
            text = _without(text, opened, closed)
    return text


def _without(text: str, opened: str, closed: str) -> str:
    kept, end = [], 0
    while (start := text.find(opened, end)) >= 0:
        kept.append(text[end:start])
        closing = text.find(closed, start)
        if closing < 0:
            end = len(text)
            break
        end = closing + len(closed)
    kept.append(text[end:])
    # If the template opens the reasoning itself, the model only closes it.
    return "".join(kept).rpartition(closed)[2]


extraction_rules.register("thinking")(
    Rule("reasoning before the answer", prepare=At(10, without_thinking))
)
