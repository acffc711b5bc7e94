"""Remove markers of a chat template, and restore line breaks that were written as text."""

from __future__ import annotations

import re

from assay.extract.rule import At, Rule, extraction_rules

MARK = re.compile(
    r"<\|(?:im_start|im_end|im_sep|endoftext|end_of_text|begin_of_text|eot_id|eom_id|end|start"
    r"|start_header_id|end_header_id|user|assistant|system|return|message|EOT|file_sep"
    r"|fim_\w+|begin_of_solution|end_of_solution|START_RESPONSE|END_RESPONSE)\|>"
    r"|<｜[^｜<>\n]{1,40}｜>|</?s>|<eos>|<bos>|<(?:start|end)_of_turn>|\[/?INST\]|<\|$|\ufeff"
)
ESCAPES = {r"\n": "\n", r"\t": "\t", r"\"": '"', r"\'": "'", "\\\\": "\\"}
ESCAPED = re.compile(r"\\[nt\"'\\]")


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
    return ESCAPED.sub(lambda found: ESCAPES[found[0]], text)


extraction_rules.register("marks")(
    Rule("markers of a chat template, and everything after them", prepare=At(20, without_marks))
)
extraction_rules.register("escaped")(
    Rule("line breaks written as text", prepare=At(30, with_line_breaks))
)
