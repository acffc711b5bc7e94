"""Random texts, long and deeply nested ones too: extraction gives a program or says that it cannot.

It finds, for example, decorators so deep that a rule raises, and texts that take minutes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.extract import NO_CODE, extract
from assay.extract.python import defines
from assay.extract.workers import ExtractionRequest, Extractor
from assay.types import Problem, PromptForm, Tests

pytestmark = pytest.mark.fuzz

SECONDS = 20.0
SHORT = 2000  # characters: extracted in this process too
PROBLEM = Problem("t", 'def f(x):\n    """Double."""\n', "", Tests("f", ""))
PIECES = [
    "def f(x):\n", "    return x\n", "async def f(x):\n", "class A:\n", "    def f(self): pass\n",
    "    @x\n", "@staticmethod\n", "import os\n", "from typing import *\n", "f(1); f(2)\n",
    "assert f(1)\n", "x: int = 1\n", "lambda: ", "yield ", "global f\n", "if x:\n", "else:\n",
    "(", "[", "{", ")", "]", "}", "-", "not ", ".a", "[0]", "()", ":=", "f'{", '"', "'", '"""', "#",
    "```", "```python\n", "```\n", "~~~\n", "`", " ", "\t", "\n", "\r", "\f", "\\", "\\n", "\\\n",
    "<think>", "</think>", "<|im_end|>", "[INST]", ">>> ", "... ", "In [1]: ", "User: ", "Note:",
    "**", "---", "===", "## ", "Sure, here it is:\n", "List[int]", "\0", "\ud800", "\ufeff", "\x85",
    "\u2028", "\u00a0", "\u201c", "é", "漢", "😀", "9", "0x", "1_", "e", "f", "_", "=", ",", ":",
]  # fmt: skip


def repeat(piece: str, times: int) -> str:
    return piece * min(times, 1 + 20_000 // len(piece))


texts = st.lists(
    st.one_of(
        st.sampled_from(PIECES),
        st.text(max_size=20),
        st.builds(
            repeat,
            st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map("".join),
            st.sampled_from([2, 30, 99, 1000, 5000, 20_000]),
        ),
    ),
    max_size=12,
).map("".join)


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    with Extractor() as extractor:
        yield extractor


def test_any_text_has_a_program_or_a_reason(extractor: Extractor) -> None:
    deadline = time.monotonic() + SECONDS
    tried = 0

    @settings(
        max_examples=300,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(texts, min_size=1, max_size=8), st.sampled_from(["chat", "text"]))
    def check(some: list[str], form: PromptForm) -> None:
        nonlocal tried
        if time.monotonic() > deadline:
            return
        tried += len(some)
        requests = ((text, ExtractionRequest(text, PROBLEM, form)) for text in some)
        for text, found in extractor.in_order(requests):
            # Neither raised, nor crashed, nor too slow: that is for texts nobody foresaw.
            assert found.reason in ("", "no-code"), (found, text[:100])
            assert (found.program == NO_CODE) == (found.reason == "no-code")
            if len(text) <= SHORT:
                assert found.program == extract(text, PROBLEM, form)
                if defines(found.program.code, "f"):
                    again = extract(found.program.code, PROBLEM, form)
                    assert again.code == found.program.code

    check()
    assert tried > 100
