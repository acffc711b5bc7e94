"""Change characters and lines of a text without looking for its program.

Remove reasoning, markers of a chat template, indentation and the output of a session. Restore line
breaks that were written as text, and plain characters.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from assay.extract.rule import At, ExtractionTask, Found, Rule, extraction_rules
from assay.formats.marks import TAGS

MARK = re.compile(
    r"<\|(?:im_start|im_end|im_sep|endoftext|end_of_text|begin_of_text|eot_id|eom_id|end|start"
    r"|start_header_id|end_header_id|user|assistant|system|return|message|EOT|file_sep"
    r"|fim_\w+|begin_of_solution|end_of_solution|START_RESPONSE|END_RESPONSE)\|>"
    r"|<｜[^｜<>\n]{1,40}｜>|</?s>|<eos>|<bos>|<(?:start|end)_of_turn>|\[/?INST\]|<\|$|\ufeff"
)
ESCAPES = {r"\n": "\n", r"\t": "\t", r"\"": '"', r"\'": "'", "\\\\": "\\"}
ESCAPED = re.compile(r"\\[nt\"'\\]")
PLAIN = {
    "\u00a0": " ", "\u2003": " ", "\u2009": " ", "\u202f": " ", "\u200b": "",
    "\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'",
    "\u2212": "-", "\u2013": "-", "\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "\u00d7": "*",
    r"\_": "_", r"\*": "*",
}  # fmt: skip
TYPOGRAPHY = re.compile("|".join(map(re.escape, PLAIN)))
SESSION = re.compile(r"^[ \t]*(?:>>>|\.\.\.|In \[\d+\]:)(?: |$)")


def without_thinking(text: str) -> str:
    """Return the text outside the reasoning. After reasoning that is cut off there is none."""
    for opened, closed in TAGS:
        if opened in text or closed in text:
            text = _without(text, opened, closed)
    return text


def _without(text: str, opened: str, closed: str) -> str:
    outside, end = [], 0
    while (start := text.find(opened, end)) >= 0:
        outside.append(text[end:start])
        closing = text.find(closed, start)
        if closing < 0:
            end = len(text)
            break
        end = closing + len(closed)
    outside.append(text[end:])
    # If the template opens the reasoning itself, the model only closes it.
    return "".join(outside).rpartition(closed)[2]


def without_marks(text: str) -> str:
    """Return the text from after its first markers up to the next one, where a turn begins."""
    start = 0
    while mark := MARK.search(text, start):
        if text[start : mark.start()].strip():
            return text[start : mark.start()]
        start = mark.end()
    return text[start:]


def with_line_breaks(text: str) -> str:
    """Return a text of one line with real breaks for ``\\n``, as in JSON inside JSON."""
    if "\n" in text.strip() or r"\n" not in text:
        return text
    return ESCAPED.sub(lambda match: ESCAPES[match[0]], text)


def replace_typography(code: str) -> str:
    """Return the text with plain spaces, quotes and signs, without Markdown's backslashes."""
    return TYPOGRAPHY.sub(lambda match: PLAIN[match[0]], code)


def join_typed_lines(text: str) -> str:
    """Return the code after the prompts, or nothing if there are none."""
    lines = text.split("\n")
    typed = [line[match.end() :] for line in lines if (match := SESSION.match(line))]
    return "".join(f"{line}\n" for line in typed)


def _find_session(text: str, _: ExtractionTask) -> Iterator[list[Found]]:
    if ">>>" in text and (typed := join_typed_lines(text)):
        yield [Found("repl", typed)]


extraction_rules.register("thinking")(
    Rule("reasoning before the answer", prepare=At(10, without_thinking))
)
extraction_rules.register("marks")(
    Rule("markers of a chat template, and everything after them", prepare=At(20, without_marks))
)
extraction_rules.register("escaped")(
    Rule("line breaks written as text", prepare=At(30, with_line_breaks))
)
extraction_rules.register("indented")(
    Rule("indentation common to all lines", fix=At(10, lambda code, _: textwrap.dedent(code)))
)
extraction_rules.register("repl")(
    Rule(
        "prompts and output of an interactive session",
        find=(At(50, _find_session),),
        fix=At(20, lambda code, _: join_typed_lines(code)),
    )
)
extraction_rules.register("typeset")(
    Rule(
        "typographic spaces, quotes and signs", fix=At(30, lambda code, _: replace_typography(code))
    )
)
