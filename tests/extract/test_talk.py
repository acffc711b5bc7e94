"""Code in talk."""

from __future__ import annotations

import pytest

from assay.extract.rules.talk import bare_code, before_talk, has_turns

CODE = "def f(x):\n    return x\n"


@pytest.mark.parametrize(
    "talk",
    ["Human: hi", "Explanation: it gives x.", "**Note**", "## Usage", "---", "```", "<|user|>"],
)
def test_talk_ends_code(talk: str) -> None:
    assert before_talk(f"{CODE}\n{talk}\nmore\n") == CODE
    assert bare_code(f"Sure!\n{CODE}\n{talk}\nmore\n", "f")[0] == CODE


def test_imports_and_decorators_belong_to_the_code() -> None:
    found = bare_code(f"We import math from there.\nimport math\n@cache\n{CODE}", "f")
    assert found[0] == f"import math\n@cache\n{CODE}"
    assert bare_code(f"class of its own\nimport math\n{CODE}", "f")[1] == f"import math\n{CODE}"


def test_an_indented_block() -> None:
    text = "So:\n\n    def f(x):\n        return x\n\nDone."
    assert bare_code(text, "f")[0] == CODE


def test_nothing_without_a_definition() -> None:
    assert bare_code("I would call f(x).", "f") == []


def test_turns_that_parse() -> None:
    assert has_turns(f"{CODE}User: thanks\n")
    assert not has_turns(f'{CODE}"""\nUser: thanks\n"""\n')
    assert not has_turns(f"{CODE}Output: int = 1\n")
