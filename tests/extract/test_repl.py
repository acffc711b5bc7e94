"""Interactive sessions."""

from __future__ import annotations

from assay.extract.rules.characters import join_typed_lines


def test_what_was_typed_without_what_was_printed() -> None:
    session = "Python 3.11\n>>> def f(x):\n...     return x\n...\n>>> f(1)\n1\n"
    assert join_typed_lines(session) == "def f(x):\n    return x\n\nf(1)\n"
    assert join_typed_lines("In [1]: x = 1\nOut[1]: 1") == "x = 1\n"
    assert join_typed_lines("def f(): ...\n") == ""
