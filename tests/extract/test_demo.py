"""Code that only shows what a program does."""

from __future__ import annotations

import time

import pytest

from assay.extract import UNCUT, alternative, explain_extraction, extract
from assay.extract.rule import Cut
from assay.extract.rules.demo import cut_demo
from assay.types import Problem, Program, Tests

TESTS = Tests("f", "assert f(1) == 2\n")
CODE = "import math\n\n\ndef f(x):\n    return 2 * x\n"


def cut(code: str) -> str:
    return cut_demo(code, TESTS).code


@pytest.mark.parametrize(
    "demo",
    ["print(f(2))\n", "assert f(2) == 5\n", "if __name__ == '__main__':\n    f(input())\n",
     "for i in range(9):\n    print(f(i))\n", "result = f(3)\nprint(result)\n",
     "try:\n    f()\nexcept TypeError:\n    pass\n", "# try it\nf(2)\n",
     "def main():\n    print(f(2))\n\nmain()\n", "class TestF(unittest.TestCase):\n    pass\n",
     "import unittest\nclass TestF(unittest.TestCase):\n    pass\n", "x = 3; print(f(x))\n"],
)  # fmt: skip
def test_it_goes(demo: str) -> None:
    found = cut_demo(f"{CODE}\n{demo}", TESTS)
    assert found.code.rstrip() in (CODE.rstrip(), CODE.rstrip() + "\n\n# try it")
    assert found.uncut is None


@pytest.mark.parametrize(
    "code",
    [
        CODE,
        "random.seed(0)\ndef f(x): pass\n",
        "def f(x):\n    return LIMIT\nLIMIT = 3\n",
        "def f(x):\n    return math.pi\nimport math\n",
        "def f(x):\n    return g(x)\ndef g(x):\n    return LIMIT\nfrom a import A\nLIMIT = A(3)\n",
        "def f(x):\n    return TABLE[x]\nTABLE = [0] * 9\nfor i in range(9):\n    TABLE[i] = i\n",
        "def f(x):\n    f.calls += 1\nf.calls = 0\n",
        "def f(x):\n    return x\nf = functools.cache(f)\n",
        "def f(x):\n    return h(x)\nfrom helpers import *\n",
        "def f(x) -> A:\n    return x\nclass B: pass\nclass A(B): pass\n",
        "f = lambda x: x\n",
        "print(1)\nx =\n",
        "def g(): pass\nf = functools.partial(g)\n",
        "nltk.download('words')\nDATA = load()\ndef f(x): pass\n",
    ],
)
def test_what_a_program_may_need_stays(code: str) -> None:
    assert cut_demo(code, TESTS) == Cut(code)


def test_only_the_demo_goes() -> None:
    code = "def f(x):\n    return LIMIT\n\nprint(f(1))\nLIMIT = 3\nassert f(2)\n"
    assert cut(code) == "def f(x):\n    return LIMIT\n\nLIMIT = 3\n"


def test_between_definitions_too() -> None:
    code = "def f(x):\n    return g()\n\nprint(f(1))\n\ndef g():\n    return 1\n\ng()\n"
    assert cut(code) == "def f(x):\n    return g()\n\n\ndef g():\n    return 1\n"


def test_what_a_definition_uses_may_be_made_by_a_call() -> None:
    code = "def f(x):\n    return CACHE[x]\nCACHE = dict(a=1)\n"
    assert cut(code) == code


def test_words_before_the_program_that_happen_to_be_expressions() -> None:
    for word in ("python", "[BEGIN]", "Solution", "a, b"):
        assert cut(f"{word}\nimport os\n{CODE}") == f"import os\n{CODE}"
    for start in ('"""A module."""\n', "sys.path.clear()\n", "x = 1\n"):
        assert cut(f"{start}{CODE}") == f"{start}{CODE}"


def test_a_demo_goes_with_the_lines_that_need_no_call() -> None:
    """A rule that removes the frame but keeps what selects from it causes a NameError."""
    demo = "frame = load(2)\ncolumn = frame['a']\nprint(f(column))\n"
    assert cut(f"{CODE}\n{demo}") == CODE


def test_a_parameter_does_not_need_what_a_demo_calls_the_same() -> None:
    """A rule that keeps it opens a file that does not exist."""
    code = "def f(path, data):\n    return [path, data]\n"
    demo = "path = '/path/to/data.csv'\ndata = open(path).read()\nprint(f(path, data))\n"
    assert cut_demo(f"{code}\n{demo}", TESTS) == Cut(code)


@pytest.mark.parametrize("name", ["f", "count"])
def test_a_demo_does_not_overwrite_a_function(name: str) -> None:
    """A rule that keeps the assignment causes "'int' object is not callable"."""
    code = "def count(xs):\n    return len(xs)\n\n\ndef f(xs):\n    return count(xs)\n"
    found = cut_demo(f"{code}\n{name} = {name}([1, 2])\nprint({name})\n", TESTS)
    assert found.code == code
    assert found.uncut is not None  # perhaps it is meant so


def test_what_the_tests_use_stays() -> None:
    code = "def f(x):\n    return x\nclass Node:\n    pass\nLIMIT = 3\nprint(f(Node()))\n"
    tests = Tests("f", "def check(candidate):\n    assert candidate(Node()) < LIMIT\n")
    assert cut_demo(code, tests).code == code.removesuffix("print(f(Node()))\n")
    assert cut(code) == "def f(x):\n    return x\n"


def test_semicolons_take_no_other_line_with_them() -> None:
    code = "def f(x):\n    return LIMIT\nf(1); f(2)\nLIMIT = 3\n"
    assert cut(code) == "def f(x):\n    return LIMIT\nLIMIT = 3\n"
    joined = "def f(x):\n    return LIMIT\nprint(2); LIMIT = 3\n"
    assert cut(joined) == joined


def test_a_carriage_return_ends_a_line() -> None:
    code = "def f(x):\r    return LIMIT\nprint(f(1))\nLIMIT = 3\n"
    assert cut(code) == "def f(x):\r    return LIMIT\nLIMIT = 3\n"


IN_DOUBT = {
    "filled by calls": "def f(x):\n    return T[x]\nT = []\nT.append(2)\nprint(f(0))\n",
    "filled by a function": (
        "T = {}\ndef f(x):\n    return T[x]\ndef fill():\n    T[1] = 2\nfill()\n"
    ),
    "set by a function": (
        "T = 0\ndef f(x):\n    return T\ndef start():\n    global T\n    T = 2\nstart()\n"
    ),
    "state of a module": "import random\ndef f(x):\n    return random.random()\nrandom.seed(2)\n",
    "a setting": "import sys\ndef f(x):\n    return f(x - 1)\nsys.setrecursionlimit(9999)\n",
    "another value": "LIMIT = 1\ndef f(x):\n    return LIMIT * x\nLIMIT = 2\nprint(f(1))\n",
    "another function": "def f(x):\n    return x\ng = f\nf = lambda x: 2 * g(x)\nf(1)\n",
    "registered": (
        "ALL = []\ndef add(g):\n    ALL.append(g)\ndef f(x):\n    return [add, ALL]\n"
        "@add\ndef g(): pass\n"
    ),
    "a name of a module": "import builtins\ndef f(x):\n    return N\nbuiltins.N = 1\n",
    "a value by the name of a builtin": (
        "def f(x):\n    return sum(x)\nsum = 0\nfor i in (1, 2):\n    sum += i\n"
    ),
    "names at run time": "def f(x):\n    return eval('T')[x]\nT = [1]\nprint(f(0))\n",
}


@pytest.mark.parametrize("kind", IN_DOUBT)
def test_a_cut_that_may_change_the_program_is_in_doubt(kind: str) -> None:
    code = IN_DOUBT[kind]
    found = cut_demo(code, TESTS)
    assert found.code != code
    assert found.uncut == code


def test_demo_lines_are_never_kept_in_part() -> None:
    """What a demonstration makes of a needed name, and what it makes of that, goes together."""
    code = "LIMIT = {}\n\n\ndef f(x):\n    return LIMIT, SIZE\n"
    demo = "LIMIT = load()\nLIMIT['a'] = 1\nSIZE = len(LIMIT)\nprint(f(2))\n"
    assert cut_demo(f"{code}\n{demo}", TESTS) == Cut(code, f"{code}\n{demo}")


def test_a_loop_may_use_the_variable_of_a_demo() -> None:
    fill = "T = {}\nfor i in range(3):\n    T[i] = i\n"
    code = "def f(x):\n    return T[x]\n"
    assert cut(f"{code}for i in range(3):\n    print(f(i))\n{fill}") == code + fill


def test_a_main_block_is_never_in_doubt() -> None:
    code = "T = []\ndef f(x):\n    return T\n"
    found = cut_demo(f"{code}if __name__ == '__main__':\n    T.append(1)\n", TESTS)
    assert found == Cut(code)


def test_names_that_the_preamble_binds_may_be_used_for_something_else() -> None:
    tests = Tests("f", "", "import random\nLIMIT = 3\n")
    code = "def f(x):\n    return LIMIT\nLIMIT = f(2)\n"
    assert cut_demo(code, tests) == Cut("def f(x):\n    return LIMIT\n", code)
    seeded = "def f(x):\n    return x\nrandom.seed(1)\n"
    assert cut_demo(seeded, tests).uncut == seeded


def test_the_alternative_is_the_program_with_its_demo() -> None:
    code = IN_DOUBT["filled by calls"].replace("(x)", "(x: List)")
    problem = Problem("t", "", "", TESTS)
    text = f"Sure:\n```python\nSolution\n{code}```\n"
    assert extract(text, problem, "chat").rule == "fenced+demo+hints"
    steps = explain_extraction(text, problem, "chat")
    assert alternative(text, steps, problem) == Program(
        f"from typing import List\n{code}", f"fenced+{UNCUT}+hints"
    )
    without = frozenset({"hints"})
    assert alternative(text, steps, problem, without) == Program(code, f"fenced+{UNCUT}")
    assert alternative(CODE, explain_extraction(CODE, problem, "chat"), problem) is None
    assert alternative("", None, problem) is None


@pytest.mark.no_cover
@pytest.mark.parametrize("count", [3000, pytest.param(9000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "line", ["print(f(1))\n", "f = f(1)\n", "a.append(f)\n", "def g(): f(1)\n", "x = x.y\n"]
)
def test_long_demos_take_time_in_proportion(line: str, count: int) -> None:
    started = time.process_time()
    assert cut(CODE + line * count) == CODE
    cut(CODE + line * (count * 4 // 3))
    assert time.process_time() - started < 8.0 * count / 9000
