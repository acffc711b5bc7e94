"""Find what a piece of Python defines, if it is Python at all."""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Iterable, Iterator
from functools import lru_cache

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
ASSIGNS = symtable.DEF_LOCAL | symtable.DEF_IMPORT  # type: ignore[attr-defined]
BINDS = ASSIGNS | symtable.DEF_PARAM  # type: ignore[attr-defined]
LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|$)")  # as Python's own numbers of lines have it
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
# The parts of these that are executed in place. The rest is a separate scope.
NOT_INSIDE: dict[type[ast.AST], tuple[str, ...]] = {
    ast.FunctionDef: ("decorator_list", "args", "returns"),
    ast.AsyncFunctionDef: ("decorator_list", "args", "returns"),
    ast.ClassDef: ("decorator_list", "bases", "keywords"),
    ast.Lambda: ("args",),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), ("generators",)),
    ast.comprehension: ("iter",),
}
# Those of Python 3.11, so that a program is the same whichever Python runs the harness.
BUILTINS = frozenset({
    "ArithmeticError", "AssertionError", "AttributeError", "BaseException", "BaseExceptionGroup",
    "BlockingIOError", "BrokenPipeError", "BufferError", "BytesWarning", "ChildProcessError",
    "ConnectionAbortedError", "ConnectionError", "ConnectionRefusedError", "ConnectionResetError",
    "DeprecationWarning", "EOFError", "Ellipsis", "EncodingWarning", "EnvironmentError",
    "Exception", "ExceptionGroup", "False", "FileExistsError", "FileNotFoundError",
    "FloatingPointError", "FutureWarning", "GeneratorExit", "IOError", "ImportError",
    "ImportWarning", "IndentationError", "IndexError", "InterruptedError", "IsADirectoryError",
    "KeyError", "KeyboardInterrupt", "LookupError", "MemoryError", "ModuleNotFoundError",
    "NameError", "None", "NotADirectoryError", "NotImplemented", "NotImplementedError", "OSError",
    "OverflowError", "PendingDeprecationWarning", "PermissionError", "ProcessLookupError",
    "RecursionError", "ReferenceError", "ResourceWarning", "RuntimeError", "RuntimeWarning",
    "StopAsyncIteration", "StopIteration", "SyntaxError", "SyntaxWarning", "SystemError",
    "SystemExit", "TabError", "TimeoutError", "True", "TypeError", "UnboundLocalError",
    "UnicodeDecodeError", "UnicodeEncodeError", "UnicodeError", "UnicodeTranslateError",
    "UnicodeWarning", "UserWarning", "ValueError", "Warning", "ZeroDivisionError",
    "__build_class__", "__debug__", "__doc__", "__import__", "__loader__", "__name__",
    "__package__", "__spec__", "abs", "aiter", "all", "anext", "any", "ascii", "bin", "bool",
    "breakpoint", "bytearray", "bytes", "callable", "chr", "classmethod", "compile", "complex",
    "delattr", "dict", "dir", "divmod", "enumerate", "eval", "exec", "filter", "float", "format",
    "frozenset", "getattr", "globals", "hasattr", "hash", "hex", "id", "input", "int", "isinstance",
    "issubclass", "iter", "len", "list", "locals", "map", "max", "memoryview", "min", "next",
    "object", "oct", "open", "ord", "pow", "print", "property", "range", "repr", "reversed",
    "round", "set", "setattr", "slice", "sorted", "staticmethod", "str", "sum", "super", "tuple",
    "type", "vars", "zip",
})  # fmt: skip
# Functions that cannot return anything that can be called.
RETURN_DATA = BUILTINS - {
    "__import__", "eval", "getattr", "max", "min", "next", "staticmethod", "type"
}  # fmt: skip
# An expression of these kinds is data, whatever it consists of.
DATA = (
    ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp, ast.BinOp, ast.UnaryOp, ast.Compare,
)  # fmt: skip


# Rules look at the same few readings of a text again and again, and parsing is what takes time.
REMEMBERED = 4
# Characters. The syntax tree of a longer program takes seconds and a gigabyte, so no rule sees one.
LONGEST_TREE = 1 << 18
# Python copies the names of a function for every scope in it: 10^7 copies take up to a second.
MOST_COPIES = 10**7
# Python 3.11 reads an f-string, and its line, again for each of its fields: a second for so much.
MOST_READ = 3 * 10**9
F_STRING = re.compile(r"\b(?:[fF][rR]?|[rR][fF])(\"\"\"|'''|\"|')")
SCOPE = re.compile(r"\b(?:def|class|lambda|for)\b")
IDENTIFIER = re.compile(r"\b[^\W\d]\w*")


@lru_cache(REMEMBERED)
def parse_code(code: str) -> ast.Module | None:
    """Return the syntax tree, which must not be changed, or None without one."""
    try:
        return ast.parse(code) if len(code) <= LONGEST_TREE and not _rereads(code) else None
    except NOT_PYTHON:
        return None


@lru_cache(REMEMBERED)
def _names(code: str) -> symtable.SymbolTable | int:
    """Return the names, in half the time of a syntax tree, or the line where Python ends."""
    try:
        return 0 if _takes_too_long(code) else symtable.symtable(code, "", "exec")
    except SyntaxError as error:
        return max(0, (error.lineno or 1) - 1)
    except NOT_PYTHON:
        return 0


def _takes_too_long(code: str) -> bool:
    scopes = len(SCOPE.findall(code))
    return _rereads(code) or (
        scopes * len(code) > MOST_COPIES
        and scopes * len(set(IDENTIFIER.findall(code))) > MOST_COPIES
    )


def _rereads(code: str) -> bool:
    """Return whether there are f-strings with so many fields that Python takes too long."""
    if code.count("{") * len(code) <= MOST_READ:
        return False
    read, start = 0, 0
    while opening := F_STRING.search(code, start):
        many_lines = len(opening[1]) == 3
        end = code.find(opening[1] if many_lines else "\n", opening.end())
        end = end + 1 if end >= 0 else len(code)
        begin = opening.start() if many_lines else code.rfind("\n", 0, opening.start()) + 1
        read += code.count("{", begin, end) * (end - begin)
        start = end
    return read > MOST_READ


def forget() -> None:
    """Free the cached parse results. Those of a long text take hundreds of megabytes."""
    parse_code.cache_clear()
    _names.cache_clear()


def wrong_line(code: str) -> int | None:
    """Return the line, from 0, where it stops being Python, or None if all of it is Python."""
    names = _names(code)
    return names if isinstance(names, int) else None


def names_in(code: str) -> symtable.SymbolTable | None:
    """Return the names of all its scopes, or None if it is not Python."""
    names = _names(code)
    return None if isinstance(names, int) else names


def find_bound_names(code: str) -> set[str]:
    """Return the names that the top level binds, or none if it is not Python."""
    names = _names(code)
    if isinstance(names, int):
        return set()
    return {name for name, flags in flags_of(names) if flags & ASSIGNS}


def defines(code: str, name: str) -> bool:
    """Return whether it is Python that binds ``name`` at the top level to what may be called.

    That is a function, a class, an import, or a value that is not known to be data.
    """
    if name not in code or name not in find_bound_names(code):
        return False
    if _has_definition(code, name) or len(code) > LONGEST_TREE:
        return True
    return not all(map(is_data, _values(code, name)))


def defines_surely(code: str, name: str) -> bool:
    """Return whether ``name`` is a function, a class, a lambda, or another name of one.

    An import of the same name does not count: it may be that of the answer in an example.
    """
    if not defines(code, name):
        return False
    return _has_definition(code, name) or any(
        isinstance(value, ast.Lambda)
        or (isinstance(value, ast.alias) and value.name != name)
        or (isinstance(value, ast.Name) and _has_definition(code, value.id))
        or (isinstance(value, ast.Attribute) and _has_method(code, value.attr))
        for value in _values(code, name)
    )


def is_data(value: ast.AST) -> bool:
    """Return whether an expression can only give something that cannot be called."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id in RETURN_DATA
    return isinstance(value, DATA)


def _has_definition(code: str, name: str) -> bool:
    """Return whether the top level has a function or a class of this name."""
    names = names_in(code)
    scopes = names._table.children if names else []  # type: ignore[attr-defined]
    return any(scope.name == name for scope in scopes)


def _has_method(code: str, name: str) -> bool:
    """Return whether a class at the top level has a method of this name."""
    module = parse_code(code)
    classes = (s for s in (module.body if module else ()) if isinstance(s, ast.ClassDef))
    return any(isinstance(s, Definition) and s.name == name for one in classes for s in one.body)


def _values(code: str, name: str) -> Iterator[ast.AST]:
    """Yield what the top level binds ``name`` to: expressions, and names of modules' contents."""
    module = parse_code(code)
    for node in walk_top_level(module.body if module else []):
        match node:
            case ast.Assign(targets, value):
                for target in targets:
                    yield from _assigned(target, value, name)
            case ast.AnnAssign(target, _, ast.expr() as value) | ast.NamedExpr(target, value):
                yield from _assigned(target, value, name)
            case ast.ImportFrom(_, aliases):
                yield from (alias for alias in aliases if name in (alias.asname, alias.name))


def _assigned(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    match target:
        case ast.Name(bound) if bound == name:
            yield value
        case ast.Tuple(targets) | ast.List(targets):
            values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            single = len(values) == len(targets)
            for number, inner in enumerate(targets):
                yield from _assigned(inner, values[number] if single else value, name)


def walk_top_level(statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """Yield what is executed at the top level, without the insides of functions and classes."""
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.Name | ast.Constant):
            continue
        for field in NOT_INSIDE.get(type(node), node._fields):
            child = getattr(node, field, None)
            if isinstance(child, list):
                waiting += [one for one in child if isinstance(one, ast.AST)]
            elif isinstance(child, ast.AST) and child._fields:
                waiting.append(child)


def acts(code: str) -> bool:
    """Return whether it is Python that calls something."""
    if len(code) > LONGEST_TREE:
        return "(" in code and names_in(code) is not None
    module = parse_code(code)
    return module is not None and any(isinstance(node, ast.Call) for node in ast.walk(module))


def find_unbound_names(code: str) -> set[str]:
    """Return names that some scope uses and none binds, or none if it is not Python."""
    names = _names(code)
    if isinstance(names, int):
        return set()
    tables = [names]
    binds: set[str] = set()
    used: set[str] = set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for name, flags in flags_of(table):
            used.add(name)
            if flags & BINDS:
                binds.add(name)
    return used - binds


def flags_of(table: symtable.SymbolTable) -> Iterable[tuple[str, int]]:
    """Return the names of one scope and what the scope does with each.

    ``get_symbols`` looks through all inner scopes for each name, which takes quadratic time.
    """
    symbols: dict[str, int] = table._table.symbols  # type: ignore[attr-defined]
    return symbols.items()


def first_line(statement: ast.stmt) -> int:
    """Return the line where a statement begins, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def without_statements(code: str, statements: Iterable[ast.stmt]) -> str:
    """Return the lines of the code without those of these statements at its top level."""
    gone: set[int] = set()
    for statement in statements:
        first = first_line(statement)
        gone.update(range(first, (statement.end_lineno or first) + 1))
    if not gone:
        return code
    lines = enumerate(LINE.findall(code), 1)
    return "".join(line for number, line in lines if number not in gone).rstrip() + "\n"


def definition(name: str) -> re.Pattern[str]:
    """Return the line, at any indentation, that begins to define ``name``."""
    s = r"[^\S\n]"  # a page may have other spaces
    return re.compile(rf"^{s}*(?:async{s}+)?(?:def|class){s}+{re.escape(name)}\b", re.M)
