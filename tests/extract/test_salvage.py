"""Code that stops being Python."""

from __future__ import annotations

import pytest

from assay.extract.rules.salvage import valid_prefix

CODE = "import math\n\ndef f(x):\n    y = x\n    return y\n"


@pytest.mark.parametrize(
    "tail",
    ["\nThis doubles x.\n", "\ndef g(:\n    pass\n", "\ndef g(x):\n    return (x\n", "\nx = '",
     "\nprint(f(1)\n", "\n)\n", "\nHope it helps!\nf(1)\nBye bye now\n"],
)  # fmt: skip
def test_a_broken_tail_goes(tail: str) -> None:
    assert valid_prefix(CODE + tail, "f") == CODE


def test_of_a_cut_off_definition_the_whole_lines_stay() -> None:
    assert valid_prefix("def f(x):\n    y = x\n    return max(y,", "f") == "def f(x):\n    y = x\n"


def test_what_cannot_be_mended_gives_nothing() -> None:
    for code in ("def f(x:\n    pass\n", "What?\ndef f(x):\n    pass\n", "def g(): pass\n", ""):
        assert valid_prefix(code, "f") == ""


def test_whole_code_stays() -> None:
    assert valid_prefix(CODE, "f") == CODE
