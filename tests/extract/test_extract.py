"""Chat text to program."""

from __future__ import annotations

import itertools
import textwrap

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay import benchmarks
from assay.errors import AssayError
from assay.extract import NO_CODE, explain_extraction, extract, extraction_rules
from assay.extract.python import defines
from assay.types import Problem, Program, PromptForm, Tests

FORMS: tuple[PromptForm, ...] = ("chat", "text")

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
        (f"```python\n{CODE}", "unclosed"),
        (f"Install it:\n```sh\npip install x\n```\nthen\n```python\n{CODE}```", "fenced"),
        (f"Here is the function:\n\n{CODE}\nExplanation: it doubles.", "bare"),
        (f"{CODE}\nHuman: thanks\nAssistant: welcome", "bare"),
        (f"{CODE}\nThis function doubles x.\nIt is fast.\n", "salvaged"),
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


def test_an_answer_that_is_only_begun_counts_last() -> None:
    stub = '```python\ndef f(x):\n    """Double."""\n```'
    assert extract(f"From\n{stub}\nto\n```python\n{CODE}```", PROBLEM, "chat").code == CODE
    assert extract(f"{stub}\n{stub}", PROBLEM, "chat").rule == "fenced"


def test_a_method_without_fences() -> None:
    code = "class Solution:\n    def f(self, x):\n        return 2 * x\n"
    for text in (code, f"Sure:\n{code}", textwrap.indent(code, "    ") + "\nDone."):
        assert extract(text, PROBLEM, "chat").code == f"{code}\n\nf = Solution().f\n"


@pytest.mark.parametrize(
    "text",
    [
        f"python\n{CODE}", f"[BEGIN]\n{CODE}[DONE]\n", f"\ufeff{CODE}",
        CODE.replace(" ", "\u00a0"), f"```python\n{CODE.replace('*', chr(92) + '*')}```",
        f"{CODE}\n>>> f(1)\n2\n", f"```python\n{CODE}>>> f(1)\n2\n```",
        f"[PYTHON]\n{CODE}[/PYTHON]", f"<code>\n{CODE}</code>",
        f"````markdown\nSo:\n```python\n{CODE}```\n````",
    ],
)  # fmt: skip
def test_wrappings(text: str) -> None:
    assert extract(text, PROBLEM, "chat").code == CODE


def test_helpers_may_stand_in_a_block_of_their_own() -> None:
    helper, code = "def g(x):\n    return 2 * x\n", "def f(x):\n    return g(x)\n"
    text = f"First:\n```python\n{helper}```\nThen:\n```python\n{code}```\n```python\nf(1)\n```"
    assert extract(text, PROBLEM, "chat") == Program(f"{helper}\n{code}", "fenced+joined")


def test_base_models_continue_the_prompt() -> None:
    body = "    return 2 * x\n"
    assert extract(body, PROBLEM, "text") == Program(f"{PROBLEM.prompt}{body}", "body")
    assert extract(body, PROBLEM, "chat") == NO_CODE


def test_headings_before_the_function_do_not_end_the_code() -> None:
    text = f"Sure:\nimport math\n## Solution\n{CODE}\nDone!"
    assert extract(text, PROBLEM, "chat").code == f"import math\n## Solution\n{CODE}"


def test_what_looks_like_talk_in_a_docstring_ends_nothing() -> None:
    code = 'def f(x):\n    """Double:\n\n=====> f(1)\n    """\n    return 2 * x\n'
    assert extract(f"I will write it.\n{code}", PROBLEM, "chat") == Program(code, "bare")


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


@pytest.mark.parametrize(
    "variable",
    [
        "f = ord(char)", "f = 1", "f = a + b", "f = [1, 2]", "f = f'{x}'", "f = x > 1", "f = -1",
        "for f in range(3): pass", "with open(n) as f: pass", "import f", "f: int = 3", "f += 1",
        "a, f = 1, 2", "f = [x for x in y]", "f = sum(map(int, x))", "f = (x for x in y)",
    ],
)  # fmt: skip
def test_a_variable_is_not_a_definition(variable: str) -> None:
    assert extract(f"{variable}\n", PROBLEM, "chat") == NO_CODE
    text = f"First:\n```python\n{variable}\nprint(f)\n```\nSo:\n```python\n{CODE}```\n"
    assert extract(text, PROBLEM, "chat") == Program(CODE, "fenced")
    text = f"```python\n{variable}\n{CODE}print(f(2))\n```"
    assert extract(text, PROBLEM, "chat").code == f"{variable}\n{CODE}"


@pytest.mark.parametrize(
    "made",
    [
        "f = functools.partial(pow, 2)", "f = cache(g)", "f = Solution().f", "f = math.gcd",
        "f = g if x else h", "f = TABLE['f']", "f: object = make()", "f, g = make()",
        "(f := make())", "f = getattr(m, 'f')",
    ],
)  # fmt: skip
def test_what_may_be_a_function_counts_if_nothing_else_is_one(made: str) -> None:
    assert extract(f"{made}\n", PROBLEM, "chat").code == f"{made}\n"
    assert extract(f"```python\n{made}\n```", PROBLEM, "chat").code == f"{made}\n"
    text = f"```python\n{made}\n```\nSo:\n```python\n{CODE}```\n"
    assert extract(text, PROBLEM, "chat") == Program(CODE, "fenced")


@pytest.mark.parametrize(
    "code",
    [
        "f = lambda x: 2 * x\n", "f: object = lambda x: x\n", "from m import g as f\n",
        "def g(x):\n    return 2 * x\nf = g\n", "async def f(x):\n    return 2 * x\n",
        "@cache\ndef f(x):\n    return 2 * x\n", "class f:\n    a = 1\n",
        "try:\n    from m import f\nexcept ImportError:\n    def f(x):\n        return x\n",
        "if True:\n    def f(x):\n        return 2 * x\n", "f, g = lambda x: x, 1\n",
    ],
)  # fmt: skip
def test_other_definitions_are_as_good_as_a_def(code: str) -> None:
    assert extract(code, PROBLEM, "chat").code == code
    for other in ("def f(a, b):\n    return a\n", "f = make()\n"):
        text = f"```python\n{code}```\nor\n```python\n{other}```\n"
        assert extract(text, PROBLEM, "chat").code == code


def test_a_lambda_before_a_def_is_the_first_answer() -> None:
    text = f"```python\nf = lambda x: 2 * x\n```\nor\n```python\n{CODE}```\n"
    assert extract(text, PROBLEM, "chat").code == "f = lambda x: 2 * x\n"


@pytest.mark.parametrize(
    "name",
    [
        "mini",
        "humaneval",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("humanevalplus", "mbpp-all", "mbppplus", "bigcodebench")
        ),
    ],
)
def test_references_are_never_changed(name: str) -> None:
    try:
        problems = benchmarks.load(name).problems
    except AssayError as error:
        pytest.skip(f"the data of {name} is not here: {error}")
    for problem in problems:
        for form in FORMS:
            assert extract(problem.reference, problem, form) == Program(problem.reference, "whole")
        fenced = extract(f"Sure:\n```python\n{problem.reference}\n```\nBye.", problem, "chat")
        # Some have fences in their docstrings, which end a Markdown block.
        if "```" not in problem.reference:
            assert fenced.code.rstrip() == problem.reference.rstrip()
        assert extract(fenced.code, problem, "chat").code == fenced.code


PIECES = [
    "def f(x):\n", "    return x\n", "```python\n", "```\n", "~~~\n", "print(f(1))\n",
    "import os\n", ">>> f(1)\n", "... \n", "Human: hi\n", "<think>", "</think>", "class A:\n",
    "    def f(self):\n", "\n", "(", '"""', "f = 1\n", "Sure, here it is:\n", "    ", "\\n",
    "assert f(1)\n", "List[int]\n", "\0", "é\u2028", "<|im_end|>", "@f\n", "x: int = 1\n",
    "if __name__ == '__main__':\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("```" * 2000)
@example("(" * 5000)
def test_any_text_gives_a_program_that_gives_itself(text: str) -> None:
    for form in FORMS:
        program = extract(text, PROBLEM, form)
        assert (program.code == "") == (program.rule == "none")
        if defines(program.code, "f"):
            assert extract(program.code, PROBLEM, form).code == program.code


def test_every_rule_can_be_left_out() -> None:
    text = f"<think>Hm.</think>\n```python\n{CODE}\nprint(f(1))\n```\n"
    assert extract(text, PROBLEM, "chat").rule == "thinking+fenced+demo"
    for rule in extraction_rules.names():
        program = extract(text, PROBLEM, "chat", frozenset({rule}))
        assert rule not in program.rule.split("+")


def test_steps_lead_from_the_text_to_the_program() -> None:
    text = f"<think>Hm.</think>\n```python\n{CODE}\nprint(f(1))\n```\n"
    steps = explain_extraction(text, PROBLEM, "chat")
    assert steps is not None
    assert steps[0].before == text
    assert all(one.after == other.before for one, other in itertools.pairwise(steps))
    assert steps[-1].after == extract(text, PROBLEM, "chat").code
