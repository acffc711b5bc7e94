"""Code in chat text that has no fences: where it starts and where talk goes on."""

from __future__ import annotations

import re

STARTS_CODE = re.compile(r"(?:def |async def |class |import |from \w[\w.]* import |@\w)")
# Turn markers, Markdown and headings that models put after their code; none is Python at column 0.
ENDS_CODE = re.compile(
    r"(?:Human|Assistant|User|System)\b[ \t]*:?|\*\*|#{2,}[ \t]|-{3,}[ \t]*$|<\||"
    r"(?:Explanation|Note|Output|Example|Examples|Usage)\b[ \t]*:"
)


def code_region(text: str) -> str:
    """The text from its first line of code up to the first line of chat after it."""
    lines = text.split("\n")
    start = next((i for i, line in enumerate(lines) if STARTS_CODE.match(line)), None)
    if start is None:
        return ""
    end = next((i for i in range(start, len(lines)) if ENDS_CODE.match(lines[i])), len(lines))
    return "\n".join(lines[start:end]).rstrip() + "\n"
