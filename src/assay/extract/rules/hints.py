"""Import names of ``typing`` that annotations use without an import."""

from __future__ import annotations

import re

from assay.extract.python import find_unbound_names
from assay.extract.rule import At, Cut, Rule, extraction_rules

NAMES = {
    "Any", "Callable", "Counter", "DefaultDict", "Deque", "Dict", "FrozenSet", "Generator",
    "Generic", "Hashable", "Iterable", "Iterator", "List", "Literal", "Mapping", "NamedTuple",
    "Optional", "Sequence", "Set", "Text", "Tuple", "Type", "TypeVar", "Union",
}  # fmt: skip
CAPITALISED = re.compile(r"\b[A-Z]\w*")
IMPORTED = re.compile(r"^from typing import (.*)|^from __future__ import annotations", re.M)


def with_hints(code: str, preamble: str) -> str:
    """Return the code with an import of the missing names before it."""
    missing = NAMES.intersection(CAPITALISED.findall(code))
    if not missing:
        return code
    for found in IMPORTED.finditer(f"{preamble}\n{code}"):
        if found[1] is None or "*" in found[1]:
            return code
        missing -= set(CAPITALISED.findall(found[1]))
    if not missing or not (missing := missing & find_unbound_names(f"{preamble}\n{code}")):
        return code
    return f"from typing import {', '.join(sorted(missing))}\n{code}"


extraction_rules.register("hints")(
    Rule(
        "missing imports from typing",
        finish=At(40, lambda code, task, _: Cut(with_hints(code, task.tests.preamble))),
    )
)
