"""Texts that took quadratic time, or raised, on the old code."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from assay.extract import extract
from assay.types import Problem, Tests

PROBLEM = Problem("t", 'def f(x):\n    """Double."""\n', "", Tests("f", ""))
CODE = "def f(x):\n    return 2 * x\n"

# On the old code half a megabyte took 900, 13 and 20 s of CPU time. Now it takes 2 s at most.
QUADRATIC: dict[str, Callable[[int], str]] = {
    "spaces after a fence": lambda size: f"```{' ' * size}!\n{CODE}",
    "many definitions": lambda size: (
        CODE + "".join(f"def g{i}(): pass\n" for i in range(size // 18))
    ),
    "many names and statements": lambda size: (
        f"{CODE}def g():\n"
        + "".join(f" a{i}\n" for i in range(size // 16))
        + "".join(f"b{i}=c()\n" for i in range(size // 16))
    ),
}


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.parametrize("kind", QUADRATIC)
def test_half_a_megabyte_takes_seconds(kind: str) -> None:
    text = QUADRATIC[kind](1 << 19)
    started = time.process_time()
    extract(text, PROBLEM, "chat")
    assert time.process_time() - started < 6.0


@pytest.mark.parametrize("depth", [900, 1000, 2000])
@pytest.mark.parametrize("decorator", [lambda n: "-" * n + "x", lambda n: "x" + ".a" * n])
def test_deep_decorators_do_not_raise(decorator: Callable[[int], str], depth: int) -> None:
    """``ast.dump`` raised RecursionError, which ended the run."""
    text = f"class A:\n    @{decorator(depth)}\n    def f(self, x):\n        return x\n"
    assert extract(text, PROBLEM, "chat").rule == "method"
