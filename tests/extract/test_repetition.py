"""Answers given more than once."""

from __future__ import annotations

import textwrap

import pytest

from assay.extract import extract
from assay.extract.extraction import alternative, explain_extraction, program
from assay.extract.rule import ExtractionTask
from assay.extract.rules.repetition import is_as_prompted, is_only_begun, without_repetition
from assay.types import Problem, Tests

PROMPT = 'def f(x):\n    """Double."""\n'
TESTS = Tests("f", "assert f(1) == 2\n")
TASK = ExtractionTask(PROMPT, TESTS, "chat")
PROBLEM = Problem("t", PROMPT, "", TESTS)
FIRST, LAST = "def f(x):\n    return 1\n", "def f(x):\n    return 2\n"
STUB = 'def f(x):\n    """Later."""\n    pass\n'
OTHER = "def f(y, z):\n    return 3\n"


def in_block(*pieces: str) -> str:
    return "Sure:\n```python\n" + "\n".join(pieces) + "```\nDone.\n"


def test_the_first_definition_counts() -> None:
    """Without fences a model that does not stop writes its answer again."""
    assert without_repetition(f"{FIRST}\n{LAST}\n{LAST}", TASK, closed=False) == FIRST
    assert without_repetition(f"{STUB}\n{LAST}", TASK, closed=False).strip() == LAST.strip()
    for code in (FIRST, f"{STUB}{STUB}", f"{FIRST}def g():\n    return f(1)\n", "def f(:\ndef f(:"):
        assert without_repetition(code, TASK, closed=False) == code


def test_in_a_closed_block_python_keeps_the_last() -> None:
    assert extract(in_block(FIRST, LAST), PROBLEM, "chat").code.strip() == LAST.strip()
    assert extract(in_block(FIRST, STUB), PROBLEM, "chat").code.strip() == FIRST.strip()
    assert extract(in_block(FIRST, OTHER), PROBLEM, "chat").code.strip() == OTHER.strip()
    unclosed = in_block(FIRST, LAST).partition("```\nDone")[0]
    assert extract(unclosed, PROBLEM, "chat").code.strip() == FIRST.strip()


def test_demonstrations_of_a_definition_go_with_it() -> None:
    shown = "result = f(3)\nprint(result)\n"
    table = "TABLE = [0, 2]\n"
    code = extract(in_block(FIRST, shown, table, LAST, shown), PROBLEM, "chat").code
    assert code.strip() == LAST.strip()
    last = "def f(x):\n    return TABLE[x]\n"
    code = extract(in_block(FIRST, shown, table, last, shown), PROBLEM, "chat").code
    assert code.split() == f"{table}{last}".split()
    assert extract(code, PROBLEM, "chat").code == code


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize(
    "later",
    [
        "old = f\ndef f(x):\n    return old(x)\n",
        "@f.register\ndef f(x: int):\n    return 2\n",
        "@functools.wraps(f)\ndef f(*args):\n    return 2\n",
    ],
)
def test_a_definition_that_needs_the_earlier_one_is_no_repetition(later: str, closed: bool) -> None:
    assert without_repetition(FIRST + later, TASK, closed=closed) == FIRST + later


def test_overloads_are_stubs() -> None:
    code = f"@overload\ndef f(x: int) -> int: ...\n@overload\ndef f(x: str) -> str: ...\n{LAST}"
    for closed in (True, False):
        assert without_repetition(code, TASK, closed=closed) == LAST


def test_the_prompts_signature_goes_first() -> None:
    """The first function may solve a simpler problem."""
    assert without_repetition(f"{OTHER}\n{LAST}", TASK, closed=False).strip() == LAST.strip()
    text = f"A similar task:\n{in_block(OTHER)}So here:\n{in_block(FIRST)}Or:\n{in_block(LAST)}"
    assert extract(text, PROBLEM, "chat").code == FIRST
    text = f"{in_block(OTHER)}{in_block(OTHER.replace('3', '4'))}"
    assert extract(text, PROBLEM, "chat").code == OTHER


@pytest.mark.parametrize(
    ("header", "fits"),
    [
        ("def f(x)", True),
        ("def f(x: int) -> int", True),
        ("def f(x, memo=None)", True),
        ("def f(x, *rest, **more)", True),
        ("def f(x, *, memo=None)", True),
        ("def f(x, y)", False),
        ("def f(x, *, y)", False),
        ("def f(n)", False),
        ("def f()", False),
        ("def f(*args)", False),
        ("async def f(x)", False),
        ("class f", False),
    ],
)
def test_what_can_be_called_as_the_prompt_says(header: str, fits: bool) -> None:
    code = f"{header}:\n    return 1\n" if "class" not in header else f"{header}:\n    a = 1\n"
    assert is_as_prompted(code, TASK, closed=True) == fits
    assert is_as_prompted(code, ExtractionTask("Write f.", TESTS, "chat"), closed=True)


def test_a_prompt_may_end_before_the_body() -> None:
    tests = Tests("Solution", "")
    task = ExtractionTask("class Solution:\n    def twice(self, x: int) -> int:\n", tests, "chat")
    right = "class Solution:\n    def twice(self, x):\n        return 2 * x\n"
    assert is_as_prompted(right, task, closed=True)
    assert not is_as_prompted(right.replace("twice", "double"), task, closed=True)
    assert not is_as_prompted(right.replace("x", "y"), task, closed=True)


def test_a_block_that_needs_a_fix_may_have_the_prompts_signature() -> None:
    listed = textwrap.indent(f"```python\n{LAST}```\n", "   ")
    text = f"A similar task:\n{in_block(OTHER)}2. So here:\n{listed}"
    assert extract(text, PROBLEM, "chat").code.strip() == LAST.strip()


def test_a_prompt_in_words_may_show_the_signature_in_a_block() -> None:
    prompt = "Double it. Start with:\n```\nimport math\ndef f(x):\n```\n"
    problem = Problem("t", prompt, "", TESTS)
    text = f"A similar task:\n{in_block(OTHER)}So here:\n{in_block(LAST)}"
    assert extract(text, problem, "chat").code == LAST


def test_what_runs_between_definitions_keeps_the_one_it_needs() -> None:
    """Python keeps the last, but not before it is defined."""
    helper = "def g():\n    return f(1)\n"
    for between in (f"{helper}TABLE = g()\n", "TABLE = f(1)\n"):
        code = f"{FIRST}{between}def f(x):\n    return TABLE\n"
        assert without_repetition(code, TASK, closed=True) == code
        found = explain_extraction(in_block(code), PROBLEM, "chat")
        whole = alternative("", found, PROBLEM) or program("", found)
        assert whole.code.strip() == code.strip()


@pytest.mark.parametrize("raised", ["NotImplementedError", 'NotImplementedError("later")'])
def test_a_function_that_is_not_implemented_is_a_stub(raised: str) -> None:
    stub = f'def f(x):\n    """Later."""\n    raise {raised}\n'
    assert is_only_begun(stub, "f")
    assert extract(f"{in_block(stub)}Now:\n{in_block(LAST)}", PROBLEM, "chat").code == LAST
    assert extract(in_block(LAST, stub), PROBLEM, "chat").code.strip() == LAST.strip()
    assert extract(in_block(stub), PROBLEM, "chat").code == stub
    assert not is_only_begun("def f(x):\n    raise ValueError(x)\n", "f")


METHOD = "class S:\n    def solve(self, x):\n        return 2 * x\n"


@pytest.mark.parametrize(
    "answer", [f"{METHOD}f = S().solve\n", f"{METHOD}solver = S()\nf = solver.solve\n"]
)
def test_a_name_of_a_method_is_a_definition(answer: str) -> None:
    text = f"{in_block(answer)}A similar task:\n{in_block(OTHER)}"
    assert extract(text, PROBLEM, "chat").code == answer


def test_a_result_is_not_the_function_that_a_method_is() -> None:
    answer = METHOD.replace("solve", "f")
    text = f"{in_block(answer)}Use it:\n{in_block('f = S().f(3)', 'print(f)')}"
    assert extract(text, PROBLEM, "chat").code.split() == f"{answer}f = S().f".split()


def test_an_import_of_the_function_is_not_its_definition() -> None:
    """A program has no other files of the answer. An import counts where nothing else does."""
    usage = "from solution import f\nprint(f(1))\n"
    assert extract(f"{in_block(usage)}{in_block(LAST)}", PROBLEM, "chat").code == LAST
    code = extract(in_block("from math import sqrt as f\n"), PROBLEM, "chat").code
    assert code == "from math import sqrt as f\n"


def test_alternatives_with_the_same_signature_are_decided_by_order() -> None:
    text = f"{in_block(FIRST)}\nAlternatively:\n{in_block(LAST)}"
    assert extract(text, PROBLEM, "chat").code == FIRST


def test_what_is_only_begun() -> None:
    stub, whole = 'def f(x):\n    """Double."""\n', "def f(x):\n    return 2 * x\n"
    assert is_only_begun(stub, "f")
    assert is_only_begun("class f:\n    async def g(self): ...\n", "f")
    assert not is_only_begun(whole, "f")
    assert not is_only_begun(stub + whole, "f")
    assert not is_only_begun("f = abs\n", "f")
    assert not is_only_begun("def f(x:\n", "f")
