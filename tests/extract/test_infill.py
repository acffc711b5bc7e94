"""What a model fills in is joined as it is; only lost white space is put back."""

from __future__ import annotations

import pytest

from assay.extract import extract
from assay.extract.rules.infill import fill_in
from assay.extract.workers import ExtractionRequest, Extractor
from assay.formats.marks import GAP_MARKS, middle_of
from assay.types import Problem, Tests

PREFIX = "def f(xs):\n    total = 0\n    for x in xs:\n"
SUFFIX = "    return total\n"
LINE = "        total += x\n"


def problem(prefix: str = PREFIX, suffix: str = SUFFIX) -> Problem:
    whole = f"{prefix}{LINE}{suffix}"
    return Problem("t", prefix, whole, Tests("f", ""), only_rule="infill", suffix=suffix)


def test_a_middle_is_joined_as_it_is() -> None:
    found = extract(LINE, problem(), "infill")
    assert (found.code, found.rule) == (f"{PREFIX}{LINE}{SUFFIX}", "infill")


def test_white_space_of_a_middle_that_fits_is_not_touched() -> None:
    """Trailing blanks, tabs and empty lines are the model's own, as upstream judges them."""
    for middle in (
        "        total += x   \n",
        "        total += x\n\n   \n",
        "\n\n        total += x\n",
    ):
        assert extract(middle, problem(), "infill").code == f"{PREFIX}{middle}{SUFFIX}"


@pytest.mark.parametrize(
    ("middle", "rule"),
    [
        ("        total += x", "infill+line-end"),
        ("        total += x   ", "infill+line-end"),
        ("total += x\n", "infill+indentation"),
        ("       total += x\n", "infill"),  # seven blanks are a block too
        ("total += x", "infill+indentation+line-end"),
        (" total += x\n", "infill+indentation"),
    ],
)
def test_lost_white_space_is_put_back_and_named(middle: str, rule: str) -> None:
    found = extract(middle, problem(), "infill")
    assert found.rule == rule
    assert found.code.split() == f"{PREFIX}{LINE}{SUFFIX}".split()
    compile(found.code, "", "exec")


def test_only_the_first_line_gets_its_indentation_back() -> None:
    found = fill_in(PREFIX, "if x:\n            total += x\n", SUFFIX)
    assert found.code == f"{PREFIX}        if x:\n            total += x\n{SUFFIX}"


def test_the_next_statement_has_the_indentation_of_its_block() -> None:
    prefix = "def f(xs):\n    total = 0\n"
    assert fill_in(prefix, "total += 1", SUFFIX).code == f"{prefix}    total += 1\n{SUFFIX}"


def test_one_lost_blank_is_put_back_wherever_the_line_belongs() -> None:
    """Decoders of SentencePiece drop the first one. The line may end a block."""
    prefix, suffix = f"{PREFIX}{LINE}", "    return total\n"
    found = fill_in(prefix, "   total += 1\n", suffix)
    assert (found.code, found.rule) == (f"{prefix}    total += 1\n{suffix}", "infill+indentation")


def test_a_return_does_not_leave_its_function() -> None:
    """Without its indentation it would still be Python for a parser."""
    prefix = 'def f(x):\n    """Return x."""\n'
    found = fill_in(prefix, "return x\n", "")
    assert (found.code, found.rule) == (f"{prefix}    return x\n", "infill+indentation")


def test_a_gap_inside_a_line_is_never_changed() -> None:
    prefix, suffix = "def f(x):\n    return", " + 1\n"
    for middle in ("x", " x", "  x  ", "\n"):
        assert fill_in(prefix, middle, suffix).code == f"{prefix}{middle}{suffix}"
        assert fill_in(prefix, middle, suffix).rule == "infill"


def test_a_middle_that_is_not_python_stays_as_it_is() -> None:
    found = extract("        total += (x\n", problem(), "infill")
    assert (found.code, found.rule) == (f"{PREFIX}        total += (x\n{SUFFIX}", "infill")


def test_nothing_filled_in_is_an_answer_too() -> None:
    assert extract("", problem(), "infill").code == PREFIX + SUFFIX


@pytest.mark.parametrize("mark", GAP_MARKS)
def test_a_text_ends_at_a_token_that_an_engine_left_in(mark: str) -> None:
    assert extract(f"{LINE}{mark}def g(): pass\n", problem(), "infill").code == (
        f"{PREFIX}{LINE}{SUFFIX}"
    )


def test_a_whole_program_is_accepted_as_one() -> None:
    whole = f"{PREFIX}{LINE}{SUFFIX}"
    assert extract(whole, problem(), "infill").code == whole
    assert middle_of(whole, PREFIX, SUFFIX) == LINE
    assert middle_of(LINE, PREFIX, SUFFIX) == LINE


def test_a_text_with_a_repeated_suffix_is_not_cut() -> None:
    """A model that does not end in time fails, or passes with dead code, as upstream judges it."""
    middle = f"{LINE}{SUFFIX}\nprint(f([1]))\n"
    assert extract(middle, problem(), "infill").code == f"{PREFIX}{middle}{SUFFIX}"


def test_worker_processes_know_the_suffix() -> None:
    with Extractor(1) as extractor:
        (found,) = (
            one
            for _, one in extractor.in_order([(0, ExtractionRequest(LINE, problem(), "infill"))])
        )
    assert found.program.code == f"{PREFIX}{LINE}{SUFFIX}"
