"""Make text from elsewhere safe to show on a terminal.

Model names, task ids, server messages, file names and program output can contain escape sequences.
These can move the cursor, change colours or the title of a terminal, or reverse what a reader sees.
Such characters are shown as Python escapes: ``\\x1b``, ``\\u202e``.
"""

from __future__ import annotations

import re
import unicodedata

TEXT_LIMIT = 1_000_000
LINE_LIMIT = 100_000
CELL_LIMIT = 1_000
TAB_WIDTH = 8
# Characters that end a line or move within it, and that a reader sees as white space.
_BREAKS = re.compile("[\t-\r\x1c-\x1f\x85\u2028\u2029]+")
# Letters and marks that have no width: Python counts them as printable.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")


def clean_text(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return a text of several lines in which newlines are the only control characters."""
    lines = _shorten(text, limit).split("\n")
    return "\n".join(_escape(line.expandtabs(TAB_WIDTH)) for line in lines)


def clean_line(text: str, limit: int = LINE_LIMIT) -> str:
    """Return the text as one line without control characters. Line ends and tabs become spaces."""
    return _escape(_BREAKS.sub(" ", _shorten(text, limit)))


def quantity(count: int, noun: str) -> str:
    """Return ``1 problem`` or ``20 problems``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"


def _escape(line: str) -> str:
    if line.isascii() and line.isprintable():
        return line
    return "".join(map(_escape_character, line))


def _escape_character(character: str) -> str:
    if character in _INVISIBLE:
        return character.encode("unicode_escape").decode()
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode()
