"""Code that stops being Python."""

from __future__ import annotations

import pytest

from assay.extract import extract
from assay.extract.rule import Effort
from assay.extract.rules import salvage
from assay.types import Problem, Tests

PROMPT = 'def f(x):\n    """Double."""\n'
PROBLEM = Problem("t", PROMPT, "", Tests("f", ""))
CODE = "import math\n\ndef f(x):\n    y = x\n    return y\n"


def valid_prefix(code: str, name: str) -> str:
    return salvage.valid_prefix(code, name, Effort())


@pytest.mark.parametrize(
    "tail",
    ["\nThis doubles x.\n", "\ndef g(:\n    pass\n", "\ndef g(x):\n    return (x\n", "\nx = '",
     "\nprint(f(1)\n", "\n)\n", "\nHope it helps!\nf(1)\nBye bye now\n"],
)  # fmt: skip
def test_a_broken_tail_goes(tail: str) -> None:
    assert valid_prefix(CODE + tail, "f") == CODE


def test_of_a_cut_off_definition_the_whole_lines_stay() -> None:
    assert valid_prefix("def f(x):\n    y = x\n    return max(y,", "f") == "def f(x):\n    y = x\n"


def test_what_cannot_be_mended_gives_nothing() -> None:
    for code in ("def f(x:\n    pass\n", "What?\ndef f(x):\n    pass\n", "def g(): pass\n", ""):
        assert valid_prefix(code, "f") == ""


def test_whole_code_stays() -> None:
    assert valid_prefix(CODE, "f") == CODE


@pytest.mark.parametrize(
    "body",
    ["return (x\n", "return x x\n", "for\n    return x\n"],
)
def test_a_docstring_alone_is_not_what_is_left(body: str) -> None:
    code = f"{PROMPT}    {body}"
    assert valid_prefix(code, "f") == ""
    assert extract(f"```python\n{code}```", PROBLEM, "chat").code.strip() == code.strip()
    assert extract(code, PROBLEM, "text").code.strip() == code.strip()
    assert valid_prefix(code.replace(body, f"y = x\n    {body}"), "f") == f"{PROMPT}    y = x\n"


def test_it_stops_when_the_effort_is_spent() -> None:
    assert salvage.valid_prefix(CODE + "\n)\n", "f", Effort(0)) == ""
    effort = Effort(len(CODE))
    assert salvage.valid_prefix(CODE, "f", effort) == CODE
    assert not effort.spend("x")
    assert not Effort(9).spend("x" * 10)
