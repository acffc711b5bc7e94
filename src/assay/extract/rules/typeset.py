"""Replace typographic characters with plain ones."""

from __future__ import annotations

import re

from assay.extract.rule import At, Rule, extraction_rules

PLAIN = {
    "\u00a0": " ", "\u2003": " ", "\u2009": " ", "\u202f": " ", "\u200b": "",
    "\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'",
    "\u2212": "-", "\u2013": "-", "\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "\u00d7": "*",
    r"\_": "_", r"\*": "*",
}  # fmt: skip
SET = re.compile("|".join(map(re.escape, PLAIN)))


def replace_typography(code: str) -> str:
    """Return the text with plain spaces, quotes and signs, without Markdown's backslashes."""
    return SET.sub(lambda found: PLAIN[found[0]], code)


extraction_rules.register("typeset")(
    Rule(
        "typographic spaces, quotes and signs", fix=At(30, lambda code, _: replace_typography(code))
    )
)
