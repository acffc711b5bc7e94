"""Choose among several definitions of the entry point.

A stub never counts if another definition does something. After that, one rule decides within code
and one between code blocks:

- A closed code block is a program that its author has finished. Python keeps the last definition.
- Elsewhere the first counts: a model that does not stop writes its answer again, and the last one
  is often cut short. The first is also what a reader copies from a text with alternatives.
- But the first that can be called as the prompt says goes before all others. An answer may solve a
  similar problem first, or explain the task by a simpler function of the same name.
"""

from __future__ import annotations

import ast
import re
import textwrap
from functools import lru_cache

from assay.extract.python import (
    Definition,
    definition,
    parse_code,
    walk_top_level,
    without_statements,
)
from assay.extract.rule import At, Cut, ExtractionTask, Origin, Rule, extraction_rules
from assay.extract.rules.demo import cut_demo
from assay.extract.rules.fences import fenced_blocks

Function = ast.FunctionDef | ast.AsyncFunctionDef
MOST_STARTS = 100
MOST_OF_CLASS = 10_000  # characters
INDENTED = re.compile(r"[^\n]*(?:\n[ \t]+[^\n]*|\n(?=\n|[ \t]))*")  # a line and what belongs to it


def without_repetition(code: str, task: ExtractionTask, *, closed: bool) -> str:
    """Return the code with one definition of the entry point. ``closed``: a closed code block."""
    name = task.name
    if code.count(name) < 2 or len(definition(name).findall(code)) < 2:
        return code
    if closed and _acts_between(code, name):
        cut = cut_demo(code, task.tests)  # a demonstration would call what is removed here
        if cut.uncut is not None or _acts_between(cut.code, name, ast.Call):
            return code  # and something else may: Python keeps the last definition anyway
        code = cut.code
    chosen = _choose(code, task, closed=closed)
    others = [s for s in _definitions(code, name) if s is not chosen]
    return without_statements(code, others if chosen and not _are_linked(code, name) else ())


def is_only_begun(code: str, name: str) -> bool:
    """Return whether ``name`` is defined, but only by stubs."""
    definitions = _definitions(code, name)
    return bool(definitions) and all(map(_is_stub, definitions))


def is_as_prompted(code: str, task: ExtractionTask, *, closed: bool) -> bool:
    """Return whether the entry point can be called as the prompt says, as far as both can be seen.

    The signature of a lambda's or another function's name is not looked at.
    """
    wanted, chosen = _find_signature(task.prompt, task.name), _choose(code, task, closed=closed)
    return wanted is None or chosen is None or _accepts(chosen, wanted)


def find_starts(text: str, task: ExtractionTask) -> list[int]:
    """Return where the first definition begins, and the first one that is as the prompt says.

    Only functions whose parameters are on one line, and classes, are compared.
    """
    starts = [match.start() for match in definition(task.name).finditer(text)]
    wanted = _find_signature(task.prompt, task.name)
    for start in starts[:MOST_STARTS]:
        header = text[start : text.find("\n", start) % (len(text) + 1)].strip()
        begun = _definitions(header, task.name) or _definitions(f"{header} pass", task.name)
        if begun and isinstance(begun[0], ast.ClassDef):
            body = INDENTED.match(text, start, start + MOST_OF_CLASS)
            begun = _definitions(textwrap.dedent(body[0]) if body else "", task.name) or begun
        if wanted is None or not begun or _accepts(begun[0], wanted):
            return list(dict.fromkeys([starts[0], start]))
    return starts[:1]


def _choose(code: str, task: ExtractionTask, *, closed: bool) -> Definition | None:
    """Return the definition of the entry point that counts, or None if all are stubs."""
    whole = [s for s in _definitions(code, task.name) if not _is_stub(s)]
    if closed or not whole:
        return whole[-1] if whole else None
    wanted = _find_signature(task.prompt, task.name)
    return next((s for s in whole if wanted is not None and _accepts(s, wanted)), whole[0])


@lru_cache(64)
def _find_signature(prompt: str, name: str) -> Definition | None:
    """Return the prompt's own definition of ``name``, which may lack its body or be in a block."""
    for code in (prompt, *(block.code for block in fenced_blocks(prompt))):
        begun = code.rstrip()
        last = begun.rpartition("\n")[2]
        body = " " * (len(last) - len(last.lstrip()) + 4) + "pass\n"
        if definitions := _definitions(code, name) or _definitions(f"{begun}\n{body}", name):
            return definitions[-1]
    return None


def _accepts(candidate: Definition, wanted: Definition) -> bool:
    """Return whether ``candidate`` can be called as ``wanted``, by position and by name.

    It may have more parameters if these are optional. A class has the same methods, or more.
    """
    if isinstance(candidate, ast.ClassDef) and isinstance(wanted, ast.ClassDef):
        methods = {s.name: s for s in candidate.body if isinstance(s, Function)}
        return all(
            s.name in methods and _accepts(methods[s.name], s)
            for s in wanted.body
            if isinstance(s, Function)
        )
    if isinstance(candidate, ast.ClassDef) or type(candidate) is not type(wanted):
        return False
    assert not isinstance(wanted, ast.ClassDef)
    return _takes(candidate.args, wanted.args)


def _takes(offered: ast.arguments, wanted: ast.arguments) -> bool:
    names, needed = ([a.arg for a in (*args.posonlyargs, *args.args)] for args in (offered, wanted))
    keywords = dict(zip((a.arg for a in offered.kwonlyargs), offered.kw_defaults, strict=True))
    named = [a.arg for a in wanted.kwonlyargs]
    return (
        names[: len(needed)] == needed
        and len(names) - len(offered.defaults) <= len(needed)
        and all(name in keywords or name in names for name in named)
        and all(default is not None or name in named for name, default in keywords.items())
        and (wanted.vararg is None or offered.vararg is not None)
        and (wanted.kwarg is None or offered.kwarg is not None)
    )


def _definitions(code: str, name: str) -> list[Definition]:
    module = parse_code(code)
    body = module.body if module else []
    return [s for s in body if isinstance(s, Definition) and s.name == name]


def _acts_between(code: str, name: str, kind: type[ast.AST] = ast.stmt) -> bool:
    """Return whether anything but definitions comes between the first and the last of ``name``.

    Only what contains a node of ``kind`` counts.
    """
    module = parse_code(code)
    body = module.body if module else []
    places = [i for i, s in enumerate(body) if isinstance(s, Definition) and s.name == name]
    between = body[places[0] : places[-1]] if places else []
    others = (statement for statement in between if not isinstance(statement, Definition))
    return any(isinstance(node, kind) for node in walk_top_level(others))


def _are_linked(code: str, name: str) -> bool:
    """Return whether a later definition needs an earlier one: ``@f.register``, ``old = f``."""
    module, defined = parse_code(code), 0
    for statement in module.body if module else ():
        if defined and isinstance(statement, Definition | ast.Assign):
            nodes = list(walk_top_level([statement]))
            called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
            if any(_reads(node, name) and id(node) not in called for node in nodes):
                return True
        defined += isinstance(statement, Definition) and statement.name == name
    return False


def _reads(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def _is_stub(statement: Definition) -> bool:
    """Return whether a body is only a docstring, ``pass``, an ellipsis or NotImplementedError.

    A class is one if all its methods are.
    """
    return all(
        isinstance(inner, ast.Pass)
        or _is_unimplemented(inner)
        or (isinstance(statement, ast.ClassDef) and isinstance(inner, Function) and _is_stub(inner))
        or (isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant))
        for inner in statement.body
    )


def _is_unimplemented(statement: ast.stmt) -> bool:
    match statement:
        case ast.Raise(ast.Name(name) | ast.Call(ast.Name(name))):
            return name == "NotImplementedError"
    return False


def _finish(code: str, task: ExtractionTask, origin: Origin) -> Cut:
    return Cut(without_repetition(code, task, closed=origin.rule == "fenced"))


extraction_rules.register("repeated")(
    Rule("further definitions of the entry point", finish=At(20, _finish))
)
