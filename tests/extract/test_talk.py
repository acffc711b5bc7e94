"""Code in talk."""

from __future__ import annotations

import textwrap

import pytest

from assay.extract import extract
from assay.extract.rule import ExtractionTask
from assay.extract.rules.repetition import find_starts
from assay.extract.rules.talk import bare_code, before_talk, has_turns
from assay.types import Problem, Tests

CODE = "def f(x):\n    return x\n"
TESTS = Tests("f", "")
PROBLEM = Problem("t", 'def f(x):\n    """The same."""\n', "", TESTS)


def find_code(text: str) -> list[str]:
    task = ExtractionTask("Write f.", TESTS, "chat")
    return [code for start in find_starts(text, task) for code in bare_code(text, start, task)]


@pytest.mark.parametrize(
    "talk",
    ["Human: hi", "Explanation: it gives x.", "**Note**", "## Usage", "---", "```", "<|user|>"],
)
def test_talk_ends_code(talk: str) -> None:
    assert before_talk(f"{CODE}\n{talk}\nmore\n") == CODE
    assert find_code(f"Sure!\n{CODE}\n{talk}\nmore\n")[0] == CODE


def test_imports_and_decorators_belong_to_the_code() -> None:
    found = find_code(f"We import math from there.\nimport math\n@cache\n{CODE}")
    assert found[0] == f"import math\n@cache\n{CODE}"
    assert find_code(f"class of its own\nimport math\n{CODE}")[1] == f"import math\n{CODE}"


def test_an_indented_block() -> None:
    text = "So:\n\n    def f(x):\n        return x\n\nDone."
    assert find_code(text)[0] == CODE


def test_helpers_in_indented_blocks() -> None:
    helper = "import math\n\ndef g(x):\n    return math.floor(x)\n"
    code = "def f(x):\n    return g(x)\n"
    together = textwrap.indent(f"{helper}\n{code}", "    ")
    apart = f"{textwrap.indent(helper, '    ')}\nThen call it.\n\n{textwrap.indent(code, '    ')}"
    for text in (f"So:\n\n{together}\nDone.", f"So:\n\n{apart}\nDone.", together.lstrip()):
        assert find_code(text)[0].split() == f"{helper}{code}".split()
    code = textwrap.indent("def f(x):\n    return math.floor(x)\n", "\t")
    assert find_code(f"import math\nSo:\n{code}")[0].startswith("import math\n\ndef f")


@pytest.mark.parametrize(
    "example",
    [
        "print(f(1))", "assert f(1) == 1", "y = f(1)", "f(1) -> 1", "x = a + b", "x + 1",
        "pip install it", "1. Return x.", "def h(x):\n        return x\n    print(h(1), f(1))",
    ],
)  # fmt: skip
def test_examples_in_indented_blocks_are_not_code(example: str) -> None:
    helper = "def g(x):\n    return x\n"
    code = "def f(x):\n    return g(x)\n"
    blocks = [textwrap.indent(block, "    ") for block in (helper, code)]
    text = "Example:\n\n    {}\n\nFirst:\n\n{}\nThen:\n\n{}\nDone.".format(example, *blocks)
    assert extract(text, PROBLEM, "chat").code.split() == f"{helper}{code}".split()


def test_nothing_without_a_definition() -> None:
    assert find_code("I would call f(x).") == []


def test_turns_that_parse() -> None:
    assert has_turns(f"{CODE}User: thanks\n")
    assert not has_turns(f'{CODE}"""\nUser: thanks\n"""\n')
    assert not has_turns(f"{CODE}Output: int = 1\n")


@pytest.mark.parametrize("similar", ["def f(y, z):\n    return y\n", "def f(y): return y\n"])
def test_the_prompts_signature_goes_first_in_talk_too(similar: str) -> None:
    text = f"A similar task:\n\n{similar}\nSo here we do this:\n\n{CODE}\nThat is all we need.\n"
    assert extract(text, PROBLEM, "chat").code.strip() == CODE.strip()


def test_a_class_with_the_prompts_methods_goes_first() -> None:
    prompt = "class f:\n    def twice(self, x: int) -> int:\n        "
    problem = Problem("t", "Double it.", "", TESTS, begun=prompt)
    code = "class f:\n    a = 2\n\n    def twice(self, x):\n        return self.a * x\n"
    similar = code.replace("twice", "again")
    text = f"A similar task:\n\n{similar}\nSo here we do this:\n\n{code}\nThat is all we need.\n"
    assert extract(text, problem, "chat").code.strip() == code.strip()
    text = f"This is it:\n\n{similar}\nThat is all we need, or so:\n\n{similar}"
    assert extract(text, problem, "chat").code.strip() == similar.strip()


@pytest.mark.parametrize(
    "later", ["def f(x):\n    return 0\n", "def f(y):\n    return y\n", "def f(x):\n    return (\n"]
)
def test_otherwise_the_first_counts_in_talk(later: str) -> None:
    text = f"This is it:\n\n{CODE}\nOr in another way:\n\n{later}"
    assert extract(text, PROBLEM, "chat").code.strip() == CODE.strip()


@pytest.mark.parametrize("later", ["def f(x):\n    return (\n", 'def f(x):\n    """Same."""\n'])
def test_a_part_of_an_answer_does_not_go_before_a_whole_one(later: str) -> None:
    whole = "def f(y):\n    return y\n"
    text = f"This is it:\n\n{whole}\nWith the name of the task:\n\n{later}"
    assert extract(text, PROBLEM, "chat").code.strip() == whole.strip()
    text = f"This is it:\n```\n{whole}```\nWith the name of the task:\n```\n{later}"
    assert extract(text, PROBLEM, "chat").code.strip() == whole.strip()


def test_helpers_in_a_completion_that_is_indented_as_a_whole() -> None:
    program = "def g(x):\n    return x\n\ndef f(x):\n    return g(x)\n"
    text = textwrap.indent(program, "    ")
    for form in ("chat", "text"):
        assert extract(text, PROBLEM, form).code.split() == program.split()
    assert extract(f"    import math\n{text}", PROBLEM, "text").code.startswith(
        "import math\ndef g"
    )
    body = "    def g(x):\n        return x\n    return g(x)\n"
    assert extract(body, PROBLEM, "text").code.endswith(body)
