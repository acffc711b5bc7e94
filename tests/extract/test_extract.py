"""Chat text to program."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay.extract import NO_CODE, extract
from assay.types import Benchmark, Problem, Program, Tests

PROBLEM = Problem(
    task_id="t", prompt='def f(x):\n    """Double."""\n', reference="", tests=Tests("f", "")
)
CODE = "def f(x):\n    return 2 * x\n"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (CODE, "whole"),
        (f"Sure!\n```python\n{CODE}```\nHope this helps.", "fenced"),
        (f"```\n{CODE}```", "fenced"),
        (f"~~~py\n{CODE}~~~", "fenced"),
        (f"````md\n{CODE}````", "fenced"),
        (f"```python\r\n{CODE}```\r\n", "fenced"),
        (f"```python\n{CODE}", "fenced-unclosed"),
        (f"Install it:\n```sh\npip install x\n```\nthen\n```python\n{CODE}```", "fenced"),
        (f"Here is the function:\n\n{CODE}\nExplanation: it doubles.", "bare"),
        (f"{CODE}\nHuman: thanks\nAssistant: welcome", "bare"),
        (f"{CODE}\nThis function doubles x.\nIt is fast.\n", "bare"),
        (f"{CODE}\nUsage:\n\n    f(2)\n", "bare"),
        (f"{CODE}\n**Note** that x is a number", "bare"),
        (f"{CODE}\n### Usage\nCall it.", "bare"),
    ],
)
def test_finds_the_code(text: str, rule: str) -> None:
    program = extract(text, PROBLEM, "chat")
    assert program.rule == rule
    assert program.code.strip() == CODE.strip()


def test_code_outside_the_first_block_that_defines_the_entry_point_is_left_out() -> None:
    text = f"```python\nimport math\n```\n```python\n{CODE}```\n```python\nprint(f(2))\n```"
    assert extract(text, PROBLEM, "chat") == Program(CODE, "fenced")


def test_base_models_continue_the_prompt() -> None:
    body = "    return 2 * x\n"
    assert extract(body, PROBLEM, "text") == Program(f"{PROBLEM.prompt}{body}\n", "body")
    assert extract(body, PROBLEM, "chat") == NO_CODE


def test_headings_before_the_function_do_not_end_the_code() -> None:
    text = f"Sure:\nimport math\n## Solution\n{CODE}\nDone!"
    assert extract(text, PROBLEM, "chat").code == f"import math\n## Solution\n{CODE}"


def test_a_body_that_ends_in_a_stray_fence() -> None:
    body = "    return 2 * x\n```\nThat is all."
    assert extract(body, PROBLEM, "text").code == f"{PROBLEM.prompt}    return 2 * x\n"


def test_odd_escapes_neither_warn_nor_change_the_rule() -> None:
    code = 'def f(x):\n    return "\\d"\n'
    assert extract(code, PROBLEM, "chat") == Program(code, "whole")


@pytest.mark.parametrize("text", ["", "I cannot do that.", "```python\ndef g(): pass\n```", "\0"])
def test_no_code_is_said(text: str) -> None:
    assert extract(text, PROBLEM, "chat") == NO_CODE


def test_broken_code_is_still_handed_over() -> None:
    assert extract("```python\ndef f(x:\n```", PROBLEM, "chat").rule == "fenced"


def test_a_definition_need_not_be_a_def() -> None:
    for code in ("f = lambda x: 2 * x\n", "from m import g as f\n", "class f: pass\n"):
        assert extract(code, PROBLEM, "chat") == Program(code, "whole")


def test_identity_on_clean_programs_and_idempotent(mini: Benchmark, humaneval: Benchmark) -> None:
    for problem in (*mini.problems, *humaneval.problems):
        program = extract(problem.reference, problem, "chat")
        assert program.code == problem.reference
        fenced = extract(f"Sure:\n```python\n{problem.reference}```\n", problem, "chat")
        assert extract(fenced.code, problem, "chat").code == fenced.code


@given(st.text(alphabet=st.sampled_from("`~ \n#*-:defx()\0é\u2028"), max_size=80))
@example("```" * 2000)
@example("(" * 5000)
def test_any_text_gives_a_program(text: str) -> None:
    program = extract(text, PROBLEM, "chat")
    assert (program.code == "") == (program.rule == "none")
