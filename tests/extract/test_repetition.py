"""Answers given more than once."""

from __future__ import annotations

from assay.extract.rules.repetition import is_only_begun, without_repetition


def test_the_first_definition_counts() -> None:
    first, again = "def f(x):\n    return 1\n", "def f(x):\n    return 2\n"
    assert without_repetition(f"{first}\n{again}\n{again}", "f") == first
    stub = 'def f(x):\n    """Later."""\n    pass\n'
    assert without_repetition(f"{stub}\n{again}", "f").strip() == again.strip()
    for code in (first, f"{stub}{stub}", f"{first}def g():\n    return f(1)\n", "def f(:\ndef f(:"):
        assert without_repetition(code, "f") == code


def test_what_is_only_begun() -> None:
    stub, whole = 'def f(x):\n    """Double."""\n', "def f(x):\n    return 2 * x\n"
    assert is_only_begun(stub, "f")
    assert not is_only_begun(whole, "f")
    assert not is_only_begun(stub + whole, "f")
    assert not is_only_begun("f = abs\n", "f")
    assert not is_only_begun("def f(x:\n", "f")
