"""Texts that take quadratic time, or raise, in a naive extraction."""

from __future__ import annotations

import symtable
import time
from collections.abc import Callable

import pytest

from assay.extract import alternative, explain_extraction, extract
from assay.extract.python import forget, parse_code
from assay.extract.rule import MOST_PARSED
from assay.types import Problem, Program, PromptForm, Tests

PROBLEM = Problem("t", 'def f(x):\n    """Double."""\n', "", Tests("f", ""))
CODE = "def f(x):\n    return 2 * x\n"

LONG_PROMPT = Problem(
    "t", f'def f(x):\n    """Double."""\n{"    # why" * 200}\n', "", Tests("f", "")
)
SIZE = 900_000
# Rules that read a text several times take 2 to 9 s of CPU time for each, or more than 10 s.
LONG: dict[str, str] = {
    "definitions": CODE,
    "stubs": "def f(x):\n    pass\n",
    "broken definitions": "def f(x):\n    return (x\n",
    "answers in blocks": f"```python\n{CODE}```\n",
    "broken answers in blocks": "```python\ndef f(x):\n    return (x\n```\n",
    "bodies in blocks": "```\nreturn (x\n```\n",
    "fences": "```\n",
    "backticks": "`",
    "brackets": "(\n",
    "quotes": '"\n',
    "prompts of a session": ">>> def f(x):\n...     return x\n",
    "indented definitions": "    def f(x):\n        return x\n\n",
    "annotated variables": "x: List[int] = 1\n",
    "classes": "class A:\n    def f(self): return 1\n",
    "statements": "f(1);",
    "one line": "f",
    "variables": "```python\nf = g()\n```\n",
    "other signatures": "```python\ndef f(y):\n    return y\n```\n",
}
# One f-string of many fields takes Python 3.11 longer than the limit.
FIELDS = {
    quote: f"{CODE}x = f{quote}{'{x}' * 300_000}{quote}\n" for quote in ("'", '"""')
} | {"lines": f"{CODE}x = f'''{chr(10).join(['{x}' * 5] * 50_000)}'''\n"}  # fmt: skip
# Python copies all names of a function for every scope in it, which takes minutes here.
SCOPES = "def f(x):\n" + "".join(f" a{i}=lambda:1\n" for i in range(40_000))


# In quadratic time, half a megabyte takes 13 to 900 s of CPU time. In linear time it takes 2 s.
QUADRATIC: dict[str, Callable[[int], str]] = {
    "spaces after a fence": lambda size: f"```{' ' * size}!\n{CODE}",
    "many definitions": lambda size: (
        CODE + "".join(f"def g{i}(): pass\n" for i in range(size // 18))
    ),
    "many names and statements": lambda size: (
        f"{CODE}def g():\n"
        + "".join(f" a{i}\n" for i in range(size // 16))
        + "".join(f"b{i}=c()\n" for i in range(size // 16))
    ),
    "an indented block": lambda size: (
        "So:\n" + "    x\n" * (size // 6) + "    def f(x): return x\n"
    ),
}


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.parametrize("kind", QUADRATIC)
def test_half_a_megabyte_takes_seconds(kind: str) -> None:
    text = QUADRATIC[kind](1 << 19)
    started = time.process_time()
    extract(text, PROBLEM, "chat")
    assert time.process_time() - started < 6.0


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.parametrize("form", ["chat", "text"])
@pytest.mark.parametrize("kind", [*LONG, "scopes"])
def test_most_of_a_megabyte_takes_seconds(kind: str, form: PromptForm) -> None:
    text = SCOPES if kind == "scopes" else LONG[kind] * (SIZE // len(LONG[kind]))
    started = time.process_time()
    for problem in (PROBLEM, LONG_PROMPT):
        steps = explain_extraction(text, problem, form)
        alternative(text, steps, problem)
        forget()
    assert time.process_time() - started < 2 * 4.0  # up to 2 s each on an idle core of 2.6 GHz


@pytest.mark.parametrize("kind", FIELDS)
def test_f_strings_of_many_fields_take_seconds(kind: str) -> None:
    started = time.process_time()
    found = extract(FIELDS[kind], PROBLEM, "chat")
    assert time.process_time() - started < 6.0
    assert found.code
    forget()


def test_ordinary_f_strings_are_read_however_many() -> None:
    code = CODE + "print(f'{f(1)} {f(2)}', {1: 2})\n" * 6_000
    assert extract(f"```python\n{code}```\nDone.", PROBLEM, "chat").rule != "none"
    assert parse_code(code) is not None
    forget()


QUICK = ("broken answers in blocks", "bodies in blocks", "other signatures")


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=() if k in QUICK else pytest.mark.slow) for k in LONG]
)
def test_no_more_than_so_many_characters_are_parsed(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted, because a time depends on the machine."""
    parsed = 0

    def count(code: str, *rest: str) -> symtable.SymbolTable:
        nonlocal parsed
        parsed += len(code)
        return real(code, *rest)

    real = symtable.symtable
    monkeypatch.setattr(symtable, "symtable", count)
    forget()
    extract(LONG[kind] * (SIZE // len(LONG[kind])), LONG_PROMPT, "text")
    # What was found is parsed once more, to complete it.
    assert parsed <= MOST_PARSED + 2 * SIZE
    forget()


def test_a_deep_exception_does_not_raise() -> None:
    code = f"def f(x):\n    raise x{'.a' * 2000}\n"
    assert extract(f"```python\n{code}```\n", PROBLEM, "chat").code == code
    assert extract(f"```\n{code}```\nor\n```\n{code}```\n", PROBLEM, "chat").code == code


def test_a_long_program_is_executed_as_it_was_found() -> None:
    table = f"TABLE = [{'1, ' * 100_000}]\n"
    code = f"def f(x: List[int]):\n    return TABLE[x]\n\n\n{table}print(f(1))\n"
    assert extract(code, PROBLEM, "chat") == Program(code, "whole")
    assert extract(f"Sure:\n```python\n{code}```\n", PROBLEM, "chat") == Program(code, "fenced")


@pytest.mark.parametrize("depth", [900, 1000, 2000])
@pytest.mark.parametrize("decorator", [lambda n: "-" * n + "x", lambda n: "x" + ".a" * n])
def test_deep_decorators_do_not_raise(decorator: Callable[[int], str], depth: int) -> None:
    """``ast.dump`` raises RecursionError for these, which must not end the run."""
    text = f"class A:\n    @{decorator(depth)}\n    def f(self, x):\n        return x\n"
    assert extract(text, PROBLEM, "chat").rule == "method"
