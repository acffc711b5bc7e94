"""Take the input of an interactive Python session, without what it printed."""

from __future__ import annotations

import re

PROMPT = re.compile(r"^[ \t]*(?:>>>|\.\.\.|In \[\d+\]:)(?: |$)")


def typed_in(text: str) -> str:
    """Return the code after the prompts, or nothing if there are none."""
    lines = text.split("\n")
    typed = [line[match.end() :] for line in lines if (match := PROMPT.match(line))]
    return "".join(f"{line}\n" for line in typed)
