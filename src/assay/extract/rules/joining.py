"""Complete programs: helpers that are in another code block, and functions that are methods."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence

from assay.extract.python import (
    BUILTINS,
    LONGEST_TREE,
    Definition,
    defines,
    find_bound_names,
    find_unbound_names,
    parse_code,
    without_statements,
)
from assay.extract.rule import At, Cut, ExtractionTask, Origin, Rule, extraction_rules
from assay.extract.rules.fences import fenced_blocks


def with_helpers(code: str, blocks: Sequence[str], name: str, preamble: str) -> str:
    """Return the code after those blocks that define what it needs and nothing else defines.

    Another definition of ``name`` is another answer, not a helper.
    """
    if len(blocks) < 2 or sum(map(len, blocks)) > LONGEST_TREE:
        return code
    if not (missing := find_unbound_names(f"{preamble}\n{code}") - BUILTINS):
        return code
    pieces = [piece for block in blocks if not defines(piece := _definitions(block), name)]
    where = {
        helper: i for i in reversed(range(len(pieces))) for helper in find_bound_names(pieces[i])
    }
    chosen: set[int] = set()
    while missing:
        index = where.get(missing.pop())
        if index is not None and index not in chosen:
            chosen.add(index)
            missing |= find_unbound_names(pieces[index]) - BUILTINS
    joined = "\n".join([*(pieces[i] for i in sorted(chosen)), code])
    # Such an import must be the first statement.
    return joined if joined.rfind("from __future__") <= 0 else code


def _definitions(block: str) -> str:
    """Return what a block defines, without its demonstrations."""
    block = textwrap.dedent(block)
    module = parse_code(block)
    if module is None:
        return ""
    defining = Definition | ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign
    return without_statements(block, [s for s in module.body if not isinstance(s, defining)])


def _finish(code: str, task: ExtractionTask, origin: Origin) -> Cut:
    if origin.rule not in ("fenced", "unclosed"):
        return Cut(code)
    blocks = [block.code for block in fenced_blocks(origin.text)]
    return Cut(with_helpers(code, blocks, task.name, task.tests.preamble))


def with_function(code: str, name: str) -> str:
    """Return the code with a function ``name`` from the last class with such a method."""
    module = parse_code(code)
    if module is None:
        return code
    for statement in reversed(module.body):
        if isinstance(statement, ast.ClassDef):
            for member in statement.body:
                if isinstance(member, ast.FunctionDef) and member.name == name:
                    static = any(map(_names_staticmethod, member.decorator_list))
                    owner = statement.name if static else f"{statement.name}()"
                    return f"{code.rstrip()}\n\n\n{name} = {owner}.{name}\n"
    return code


def _names_staticmethod(decorator: ast.expr) -> bool:
    """Return whether ``staticmethod`` occurs in a decorator, however deeply that is nested."""
    fields = (field for node in ast.walk(decorator) for _, field in ast.iter_fields(node))
    return any(isinstance(field, str) and "staticmethod" in field for field in fields)


extraction_rules.register("joined")(
    Rule("code blocks with helpers, added before the code", finish=At(10, _finish))
)
extraction_rules.register("method")(
    Rule(
        "a method, turned into a function",
        fix=At(60, lambda code, task: with_function(code, task.name)),
    )
)
