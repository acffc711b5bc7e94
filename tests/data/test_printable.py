"""Text that is safe to print stays as it is; everything else becomes visible."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.data.printable import clean_line, clean_text, quantity

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates too
HARMFUL = ("Cc", "Cf", "Cs", "Zl", "Zp")


@given(ANY_TEXT)
def test_a_line_is_one_line_without_control_characters(text: str) -> None:
    line = clean_line(text)
    assert not [c for c in line if unicodedata.category(c) in HARMFUL]
    line.encode()  # no lone surrogates
    assert clean_line(line) == line


@given(ANY_TEXT)
def test_a_text_keeps_its_lines_and_no_control_character_else(text: str) -> None:
    shown = clean_text(text)
    assert shown.count("\n") == text.count("\n")
    assert not [c for c in shown if c != "\n" and unicodedata.category(c) in HARMFUL]
    assert clean_text(shown) == shown


@given(st.text(st.characters(categories=("L", "N", "P", "S"), max_codepoint=0x2FF)))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert clean_line(text) == clean_text(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x9b31m\x7f", r"\x9b31m\x7f"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("fil\u3164ler", r"fil\u3164ler"),
        ("two\r\nlines\tand a tab", "two lines and a tab"),
        ("two\u2028lines\x85more", "two lines more"),
        ("half \ud83d", r"half \ud83d"),
        ("日本語\u3000 naïve 🙂", "日本語\u3000 naïve 🙂"),
        ("tag \U000e0041", r"tag \U000e0041"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert clean_line(text) == shown


def test_length_is_bounded() -> None:
    assert clean_line("x" * 100, 10) == "x" * 10 + "…"
    assert clean_text("x\n" * 100, 4) == "x\nx\n…"
    assert len(clean_line("\x1b" * 10**7, 1000)) <= 4001


def test_tabs_of_a_program_become_spaces() -> None:
    assert clean_text("if x:\n\treturn\n") == "if x:\n        return\n"


def test_one_is_singular() -> None:
    assert [quantity(n, "problem") for n in (0, 1, 2)] == ["0 problems", "1 problem", "2 problems"]
