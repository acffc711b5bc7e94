"""Remove the indentation of a whole program."""

from __future__ import annotations

import textwrap

from assay.extract.rule import At, Rule, extraction_rules

extraction_rules.register("indented")(
    Rule("indentation common to all lines", fix=At(10, lambda code, _: textwrap.dedent(code)))
)
