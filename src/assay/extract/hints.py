"""Names of ``typing`` that annotations use and nobody imported."""

from __future__ import annotations

import re

from assay.extract.python import NOT_PYTHON, symbols

NAMES = (
    "Any", "Callable", "Counter", "DefaultDict", "Deque", "Dict", "FrozenSet", "Generator",
    "Generic", "Hashable", "Iterable", "Iterator", "List", "Literal", "Mapping", "NamedTuple",
    "Optional", "Sequence", "Set", "Text", "Tuple", "Type", "TypeVar", "Union",
)  # fmt: skip
MENTIONED = re.compile(rf"\b(?:{'|'.join(NAMES)})\b")


IMPORTED = re.compile(r"^from typing import (.*)|^from __future__ import annotations", re.M)


def with_hints(code: str, preamble: str) -> str:
    """The code with an import of them in front."""
    missing = set(MENTIONED.findall(code))
    for found in IMPORTED.finditer(f"{preamble}\n{code}"):
        if found[1] is None or "*" in found[1]:
            return code
        missing -= set(MENTIONED.findall(found[1]))
    if not missing or not (missing := missing & _unbound(f"{preamble}\n{code}")):
        return code
    return f"from typing import {', '.join(sorted(missing))}\n{code}"


def _unbound(code: str) -> set[str]:
    """Names that some scope uses and none binds; none if it is no Python."""
    try:
        tables = [symbols(code)]
    except NOT_PYTHON:
        return set()
    bound: set[str] = set()
    used: set[str] = set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            used.add(symbol.get_name())
            if symbol.is_assigned() or symbol.is_imported() or symbol.is_parameter():
                bound.add(symbol.get_name())
    return used - bound
