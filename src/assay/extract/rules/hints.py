"""Import names of ``typing`` that only annotations use, if no import is there."""

from __future__ import annotations

import ast
import re

from assay.extract.python import LINE, find_unbound_names, parse_code
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
    for line in IMPORTED.finditer(f"{preamble}\n{code}"):
        if line[1] is None or "*" in line[1]:
            return code
        missing -= set(CAPITALISED.findall(line[1]))
    if not missing or not (missing := missing & find_unbound_names(f"{preamble}\n{code}")):
        return code
    if not (missing := missing & _find_hints(code)):
        return code
    lines = LINE.findall(code)
    place = _after_future_imports(code)
    lines.insert(place, f"from typing import {', '.join(sorted(missing))}\n")
    return "".join(lines)


def _after_future_imports(code: str) -> int:
    """Return the number of lines up to the last import that nothing else may precede."""
    module = parse_code(code)
    imports = [s for s in (module.body if module else ()) if isinstance(s, ast.ImportFrom)]
    return max((s.end_lineno or 0 for s in imports if s.module == "__future__"), default=0)


def _find_hints(code: str) -> set[str]:
    """Return the names that only annotations use.

    A program that calls ``Counter`` without an import is wrong, whatever it annotates.
    """
    module = parse_code(code)
    hints: set[str] = set()
    others: set[str] = set()
    waiting: list[tuple[ast.AST, set[str]]] = [(module, others)] if module else []
    while waiting:
        node, names = waiting.pop()
        match node:
            case ast.Name(name):
                names.add(name)
            case ast.Call(ast.Name(name)):
                others.add(name)
        for field, child in ast.iter_fields(node):
            inside = hints if field in ("annotation", "returns") else names
            some = child if isinstance(child, list) else [child]
            waiting += [(one, inside) for one in some if isinstance(one, ast.AST)]
    return hints - others


extraction_rules.register("hints")(
    Rule(
        "missing imports from typing",
        finish=At(40, lambda code, task, _: Cut(with_hints(code, task.tests.preamble))),
    )
)
