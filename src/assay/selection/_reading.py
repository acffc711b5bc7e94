"""Parse examples out of a prompt's text. Nothing is executed here.

Prompts show them as doctests, as assertions, as ``f(1) == 2`` with many kinds of arrows, and in
prose: ``For n = 1 the output should be 2``, ``Input: 1 Output: 2``.
"""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from assay.data import plain

NOT_PYTHON = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)
MOST_LINES = 50  # of one assertion
BRACKETS = {"(": ")", "[": "]", "{": "}"}
STRING = re.compile(r"""'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*\"""")
NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
CONSTANT = re.compile(r"(?:[Tt]rue|[Ff]alse|None)\b")
CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")
ARROW = re.compile(r"[ \t]*(?:#[ \t]*)?(?:==>|=>|==|=|->|➞|→|returns?\b|should\s+return\b)\s*")
END_OF_SOURCE = re.compile(r"[ \t]*(?:(?:#[^\n]*)?\n[ \t]*)?")
NOTHING = re.compile(r"\n|>>>|\Z")  # is printed
OPERATOR = re.compile(r"[ \t]*[-+*/%]")
LAST_EQUALS = re.compile(r"=[ \t]*(?=[^=]*$)")
GIVEN = re.compile(r"\bFor\s+(?=\w+\s*=)|\bInput\s*:\s*")
BINDING = re.compile(r"\s*,?\s*(?:(?!Output)[A-Za-z_]\w*\s*[:=]\s*)?")
RESULT = re.compile(r"\s*Output\s*:\s*|[^\n]*?\bshould\s+be\s+")


@dataclass(frozen=True, slots=True)
class PromptExample:
    """A call of the entry point, and an expression that is true if it returned the shown value.

    The expression uses ``got`` for the returned value, and may use ``same(a, b)``.
    """

    arguments: tuple[Any, ...]
    check: str


def examples_in(prompt: str, entry_point: str) -> list[PromptExample]:
    """Return all examples whose arguments are plain data, in a fixed order, without duplicates."""
    # A backslash may belong to the docstring or to the example.
    return max((_read(t, entry_point) for t in find_prose(prompt, entry_point)), key=len)


def find_prose(prompt: str, entry_point: str) -> tuple[str, ...]:
    """Return the prose of a prompt: the docstring of the function or module, parsed and as written.

    A prompt that is not code is all prose.
    """
    module = _parse(prompt)
    if module is None:
        return (prompt,)
    bodies = [
        node.body
        for node in module.body
        if isinstance(node, ast.FunctionDef) and node.name == entry_point
    ]
    for statement in (bodies or [module.body])[-1]:
        match statement:
            case ast.Expr(ast.Constant(str(text))):
                source = ast.get_source_segment(prompt, statement) or ""
                return text, source.lstrip("rRuU").strip("\"'")
    return (prompt,)


def _read(text: str, entry_point: str) -> list[PromptExample]:
    found, rest = _assertions(text, entry_point)
    found += [*_calls(rest, re.escape(entry_point)), *_in_words(rest)]
    others = sorted({*CALLED.findall(rest)} - {*dir(builtins)})
    if not found and others:  # two prompts of HumanEval show the function under another name
        found = list(_calls(rest, "|".join(others)))
    return list({repr(example): example for example in found}.values())


def _assertions(text: str, name: str) -> tuple[list[PromptExample], str]:
    """Return the assertions that call ``name``, and the text without assertions."""
    lines, rest, found = text.splitlines(), list[str](), list[PromptExample]()
    while lines:
        condition, length = _assertion_at(lines)
        if condition is None:
            rest.append(lines[0])
        else:
            found += _example(condition, name)
        del lines[:length]
    return found, "\n".join(rest)


def _assertion_at(lines: list[str]) -> tuple[ast.expr | None, int]:
    """Return the assertion that starts here, if one does, and its number of lines."""
    if lines[0].lstrip().startswith("assert "):
        for length in range(1, min(len(lines), MOST_LINES) + 1):
            match _parse("\n".join(lines[:length]).strip()):
                case ast.Module([ast.Assert(condition)]):
                    return condition, length
    return None, 1


def _calls(text: str, name: str) -> Iterator[PromptExample]:
    """Find ``name(1) == 2``, and a call after ``>>>`` with its value on the next line."""
    for match in re.finditer(rf"\b({name})\(", text):
        line = text.rfind("\n", 0, match.start()) + 1
        before = text[line : match.start()]
        doctest = before.lstrip().startswith(">>>")
        start = line + before.index(">>>") + 3 if doctest else match.start()
        end = _end_of_group(text, start)
        call = _parse(text[start:end].strip())
        if call is None or not isinstance(call.body[0], ast.Expr):
            continue
        value = _parse_shown_value(text, end, doctest)
        if value is not None:
            equal = ast.Compare(call.body[0].value, [ast.Eq()], [value])
            yield from _example(equal, match[1])


def _parse_shown_value(text: str, end: int, doctest: bool) -> ast.expr | None:
    """Return the value shown after a call."""
    if arrow := ARROW.match(text, end):
        return _result_at(text, arrow.end())
    if not doctest:
        return None
    printed = _skip(END_OF_SOURCE, text, end)
    if NOTHING.match(text, printed):
        return ast.Constant(None)
    return _result_at(text, printed)


def _in_words(text: str) -> Iterator[PromptExample]:
    for given in GIVEN.finditer(text):
        arguments, end = _bound(text, given.end())
        result = RESULT.match(text, end)
        value = _result_at(text, result.end()) if result else None
        if arguments and value is not None:
            call = ast.Call(ast.Name("f"), arguments, [])
            yield from _example(ast.Compare(call, [ast.Eq()], [value]), "f")


def _bound(text: str, position: int) -> tuple[list[ast.expr], int]:
    """Return the values of ``a = 1, b = 2`` or of ``1, 2``, and where they end."""
    values = []
    while found := _literal_at(text, _skip(BINDING, text, position)):
        value, position = found
        values.append(value)
    return values, position


def _example(test: ast.expr, name: str) -> list[PromptExample]:
    """Return the example in an expression that calls ``name`` once, only with plain data."""
    calls = [
        node
        for node in ast.walk(test)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]
    if len(calls) != 1 or calls[0].keywords:
        return []
    try:
        arguments = tuple(ast.literal_eval(argument) for argument in calls[0].args)
    except NOT_PYTHON:
        return []
    if plain.has_opaque(plain.encode(arguments)):
        return []
    expression = _Got(calls[0]).visit(test)
    match expression:
        case ast.Compare(left, [ast.Eq()], [right]):
            return [PromptExample(arguments, f"same({ast.unparse(left)}, {ast.unparse(right)})")]
    return [PromptExample(arguments, ast.unparse(expression))]


class _Got(ast.NodeTransformer):
    """A replacement of a call by ``got``."""

    def __init__(self, call: ast.Call) -> None:
        self._call = call

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return ast.Name("got") if node is self._call else self.generic_visit(node)


def _result_at(text: str, position: int) -> ast.expr | None:
    """Return a literal, or the end of a computation such as ``19 - 5 - 6 = 8``."""
    found = _literal_at(text, position)
    if found is None:
        return None
    value, end = found
    if not (NUMBER.match(text, position) and OPERATOR.match(text, end)):
        return value
    line = text[end:].partition("\n")[0]
    equals = LAST_EQUALS.search(line)
    last = _literal_at(line, equals.end()) if equals else None
    return last[0] if last else None


def _literal_at(text: str, position: int) -> tuple[ast.expr, int] | None:
    """Return the literal that starts here, and where it ends."""
    if text[position : position + 1] in BRACKETS:
        end = _end_of_group(text, position)
    else:
        patterns = (CONSTANT, STRING, NUMBER)
        token = next((m for p in patterns if (m := p.match(text, position))), None)
        if token is None or text[token.end() : token.end() + 1].isalnum():
            return None
        end = token.end()
    source = text[position:end]
    module = _parse(source.capitalize() if source in ("true", "false") else source)
    match module:
        case ast.Module([ast.Expr(value)]):
            try:
                ast.literal_eval(value)
            except NOT_PYTHON:
                return None
            return value, end
    return None


def _end_of_group(text: str, start: int) -> int:
    """Return the position after the bracket that closes the first one, or the text's end."""
    open_brackets: list[str] = []
    position = start
    while position < len(text):
        character = text[position]
        if string := STRING.match(text, position):
            position = string.end()
            continue
        position += 1
        if character in BRACKETS:
            open_brackets.append(BRACKETS[character])
        elif open_brackets and character == open_brackets[-1]:
            open_brackets.pop()
            if not open_brackets:
                return position
    return position


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return found.end() if found else position


def _parse(source: str) -> ast.Module | None:
    """Return the parsed source, or None if it is empty or not Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = ast.parse(source)
        except NOT_PYTHON:
            return None
    return module if module.body else None
