"""Answers given more than once."""

from __future__ import annotations

from assay.extract.repetition import without_repetition


def test_the_first_definition_counts() -> None:
    first, again = "def f(x):\n    return 1\n", "def f(x):\n    return 2\n"
    assert without_repetition(f"{first}\n{again}\n{again}", "f") == first
    stub = 'def f(x):\n    """Later."""\n    pass\n'
    assert without_repetition(f"{stub}\n{again}", "f").strip() == again.strip()
    for code in (first, f"{stub}{stub}", f"{first}def g():\n    return f(1)\n", "def f(:\ndef f(:"):
        assert without_repetition(code, "f") == code
