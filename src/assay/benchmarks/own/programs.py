"""Read the code in a user's benchmark: prompts, tests and references. Nothing is executed."""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Iterator
from typing import Any

SOURCE = "<benchmark>"
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
CHECK = "check"  # HumanEval's tests are a function with this name


def parse_code(code: str) -> ast.Module:
    """Return the code's syntax tree. Raise ValueError with one line if it is not valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes, and comparisons that look odd
            tree = ast.parse(code, SOURCE)
            compile(tree, SOURCE, "exec", dont_inherit=True)  # finds a return outside a function
    except SyntaxError as error:
        where = f"line {error.lineno} of it: " if error.lineno else ""
        raise ValueError(f"is not valid Python ({where}{error.msg})") from error
    except (RecursionError, MemoryError) as error:
        raise ValueError("is not valid Python (nested too deeply)") from error
    except ValueError as error:
        raise ValueError(f"is not valid Python ({error})") from error
    return tree


def is_code(text: str) -> bool:
    """Return whether a text can be parsed as Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text, SOURCE)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def complete_reference(reference: str, entry_point: str, begun: str = "") -> str:
    """Return the reference as a whole program. Raise ValueError if it is not one.

    ``begun`` is a prompt that is code. Its continuation is a reference too, as in HumanEval, and
    may have lost its indentation, as in a YAML block. Without an entry point any program will do.
    """
    if not entry_point:
        parse_code(reference)
        return reference
    problems = []
    for start, program in _list_readings(reference, begun):
        try:
            tree = parse_code(program)
        except ValueError as error:
            problems.append(str(error))
            continue
        if _defines(tree, entry_point, after_line=start):
            return program
        problems.append(f"does not define '{entry_point}'")
    raise ValueError(problems[0])


def _list_readings(reference: str, begun: str) -> Iterator[tuple[int, str]]:
    """Yield programs, with the number of lines in which none of the reference is."""
    yield 0, reference
    if begun:
        start = begun if begun.endswith("\n") else f"{begun}\n"
        lines = len(start.rstrip().splitlines())
        yield lines, start + reference
        yield lines, start + textwrap.indent(reference, "    ")


def _defines(tree: ast.Module, name: str, after_line: int) -> bool:
    """Return whether the code defines the name, with a part of it after this line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if node.name == name and (node.end_lineno or 0) > after_line:
                    return True
            case ast.Name(id=found, ctx=ast.Store()) if found == name and not after_line:
                return True
            case ast.alias() if (node.asname or node.name) == name and not after_line:
                return True
    return False


def complete_tests(code: str, entry_point: str) -> str:
    """Return test code. A function ``check`` that nothing calls is called with the entry point.

    Raise ValueError if it is not valid Python.
    """
    body = parse_code(code).body
    defined = any(isinstance(node, ast.FunctionDef) and node.name == CHECK for node in body)
    others = (node for node in body if not isinstance(node, Definition))
    called = any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == CHECK
        for statement in others
        for node in ast.walk(statement)
    )
    return f"{code}\n{CHECK}({entry_point})\n" if defined and not called else code


def read_call(text: str, entry_point: str) -> tuple[list[Any], Any]:
    """Return arguments and result of ``f(1, 2) == 3``. Raise ValueError for anything else."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ast.parse(text.strip().removeprefix("assert "), SOURCE, mode="eval").body
            match found:
                case ast.Compare(ast.Call(ast.Name(name), args, []), [ast.Eq()], [expected]):
                    if name == entry_point:
                        return [ast.literal_eval(arg) for arg in args], ast.literal_eval(expected)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        pass
    raise ValueError(
        f"{text[:40]!r} is not a case. Write '{entry_point}(1, 2) == 3' with literals, or 'args' "
        "and 'expected'"
    )
