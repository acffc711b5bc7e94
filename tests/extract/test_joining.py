"""Helpers in one block, the function in another."""

from __future__ import annotations

import pytest

from assay.extract.rules.joining import with_helpers

CODE = "def f(x):\n    return twice(x)\n"
HELPER = "def twice(x):\n    return 2 * x\n"


def test_what_the_code_calls_comes_first() -> None:
    assert with_helpers(CODE, [HELPER, CODE], "f", "") == f"{HELPER}\n{CODE}"
    assert with_helpers(CODE, [CODE, HELPER], "f", "") == f"{HELPER}\n{CODE}"


def test_helpers_may_need_others_and_imports() -> None:
    helper = "def twice(x):\n    return math.floor(double(x))\n"
    double = "def double(x):\n    return 2 * x\n"
    joined = with_helpers(CODE, ["import math\n", double, helper], "f", "")
    assert joined == f"import math\n\n{double}\n{helper}\n{CODE}"


def test_what_a_block_only_tries_stays_out() -> None:
    block = f"{HELPER}print(twice(1))\nassert twice(1) == 2\n"
    assert with_helpers(CODE, [block, CODE], "f", "") == f"{HELPER}\n{CODE}"


def test_of_several_definitions_the_first_counts() -> None:
    other = "def twice(x):\n    return x + x\n"
    assert with_helpers(CODE, [HELPER, other], "f", "") == f"{HELPER}\n{CODE}"


@pytest.mark.parametrize(
    ("code", "blocks", "preamble"),
    [
        ("def f(x):\n    return len(x)\n", ["def len(x):\n    return 0\n"], ""),
        (CODE, [HELPER], HELPER),
        (CODE, [f"{HELPER}{CODE}"], ""),
        (CODE, ["def twice(x:\n"], ""),
        (CODE, ["$ pip install twice\n"], ""),
        (f"{HELPER}{CODE}", ["def twice(x):\n    return 3\n"], ""),
        ("def f(x:\n    return twice(x)\n", [HELPER], ""),
        (f"from __future__ import annotations\n{CODE}", [HELPER], ""),
    ],
)
def test_where_nothing_is_missing_or_nothing_helps(
    code: str, blocks: list[str], preamble: str
) -> None:
    assert with_helpers(code, blocks, "f", preamble) == code
