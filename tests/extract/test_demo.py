"""Code that only shows what a program does."""

from __future__ import annotations

import pytest

from assay.extract.demo import cut_demo

from assay.types import Tests

TESTS = Tests("f", "assert f(1) == 2\n")
CODE = "import math\n\n\ndef f(x):\n    return 2 * x\n"


def cut(code: str) -> str:
    return cut_demo(code, TESTS).code


@pytest.mark.parametrize(
    "demo",
    ["print(f(2))\n", "assert f(2) == 5\n", "if __name__ == '__main__':\n    f(input())\n",
     "for i in range(9):\n    print(f(i))\n", "result = f(3)\nprint(result)\n",
     "try:\n    f()\nexcept TypeError:\n    pass\n", "# try it\nf(2)\n"],
)  # fmt: skip
def test_it_goes(demo: str) -> None:
    assert cut(f"{CODE}\n{demo}").rstrip() in (
        CODE.rstrip(), CODE.rstrip() + "\n\n# try it",
    )  # fmt: skip


@pytest.mark.parametrize(
    "code",
    [
        CODE,
        "random.seed(0)\ndef f(x): pass\n",
        "def f(x):\n    return LIMIT\nLIMIT = 3\n",
        "def f(x):\n    return math.pi\nimport math\n",
        "f = lambda x: x\n",
        "print(1)\nx =\n",
        "def g(): pass\nf = functools.partial(g)\n",
    ],
)
def test_what_a_program_may_need_stays(code: str) -> None:
    assert cut(code) == code


def test_only_the_demo_goes() -> None:
    code = "def f(x):\n    return LIMIT\n\nprint(f(1))\nLIMIT = 3\nassert f(2)\n"
    assert cut(code) == "def f(x):\n    return LIMIT\n\nLIMIT = 3\n"


def test_between_definitions_too() -> None:
    code = "def f(x):\n    return x\n\nprint(f(1))\n\ndef g():\n    return 1\n\ng()\n"
    assert cut(code) == "def f(x):\n    return x\n\n\ndef g():\n    return 1\n"


def test_what_a_definition_uses_may_be_made_by_a_call() -> None:
    code = "def f(x):\n    return CACHE[x]\nCACHE = dict(a=1)\n"
    assert cut(code) == code


def test_words_before_the_program_that_happen_to_be_expressions() -> None:
    for word in ("python", "[BEGIN]", "Solution", "a, b"):
        assert cut(f"{word}\nimport os\n{CODE}") == f"import os\n{CODE}"
    for start in ('"""A module."""\n', "sys.path.clear()\n", "x = 1\n"):
        assert cut(f"{start}{CODE}") == f"{start}{CODE}"
