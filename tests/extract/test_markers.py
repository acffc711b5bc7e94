"""Marks of chat templates, and line breaks written as text."""

from __future__ import annotations

import pytest

from assay.extract.rules.characters import with_line_breaks, without_marks


@pytest.mark.parametrize(
    "mark",
    ["<|im_end|>", "<|endoftext|>", "<|eot_id|>", "</s>", "<end_of_turn>", "<｜end▁of▁sentence｜>",
     "[INST]", "<|file_sep|>", "<|end|>"],
)  # fmt: skip
def test_a_mark_ends_the_answer(mark: str) -> None:
    assert without_marks(f"answer{mark}\nuser: more") == "answer"
    assert without_marks(f"{mark}answer") == "answer"
    assert without_marks(f" {mark}{mark}\nanswer{mark}") == "\nanswer"


def test_operators_are_no_marks() -> None:
    text = "x = a <b| c> d\ny = x < s > z\n"
    assert without_marks(text) == text


def test_line_breaks_written_as_text() -> None:
    assert with_line_breaks(r"def f(x):\n\treturn \"a\"") == 'def f(x):\n\treturn "a"'
    assert with_line_breaks(r"print('\\n')\nx") == "print('\\n')\nx"
    for text in ("print('\\n')\nx = 1\n", "no line break at all"):
        assert with_line_breaks(text) == text
