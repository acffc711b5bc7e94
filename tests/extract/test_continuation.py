"""Bodies behind the prompt."""

from __future__ import annotations

import pytest

from assay.extract import NO_CODE, extract
from assay.extract.rules.continuation import goes_beyond
from assay.types import Problem, Tests

PROMPT = 'from typing import List\n\n\ndef f(x: int) -> int:\n    """Double."""\n'
PROBLEM = Problem("t", PROMPT, "", Tests("f", ""))
WANTED = f"{PROMPT}    y = x\n    return 2 * y\n"


@pytest.mark.parametrize(
    "text",
    [
        "    y = x\n    return 2 * y\n",
        "    y = x\n    return 2 * y",
        " y = x\n    return 2 * y\n",
        "y = x\n    return 2 * y\n",
        "y = x\nreturn 2 * y\n",
        "  y = x\n  return 2 * y\n",
        "    y = x\n    return 2 * y\n```\nThat is all.",
        "    y = x\n    return 2 * y\n\n\ndef f(x):\n    return 3\n",
        "    y = x\n    return 2 * y\n\n\nprint(f(3))\n",
        "    y = x\n    return 2 * y\n\nI hope this helps.\n",
        "```python\n    y = x\n    return 2 * y\n```",
    ],
)
def test_bodies(text: str) -> None:
    assert extract(text, PROBLEM, "text").code.rstrip() == WANTED.rstrip()


def test_a_repeated_signature_is_the_whole_program() -> None:
    code = "def f(x: int) -> int:\n    return 2 * x\n"
    assert extract(code, PROBLEM, "text").code == code


def test_a_chat_model_may_answer_with_a_body_in_a_block() -> None:
    text = "The body:\n```python\n    y = x\n    return 2 * y\n```"
    assert extract(text, PROBLEM, "chat").code.rstrip() == WANTED.rstrip()


def test_a_docstring_is_no_body() -> None:
    assert not goes_beyond(PROMPT, PROMPT, "f")
    assert goes_beyond(WANTED, PROMPT, "f")
    assert extract("\n\nSorry.", PROBLEM, "chat") == NO_CODE
