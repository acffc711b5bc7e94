"""Where the tests' calls stand in their source is nobody's business but theirs."""

from __future__ import annotations

import pytest

from tests.security.in_tiers import TIERS, Step, assert_all_failed, job, judge_in

TESTS = """
def check(f):
    assert f([2, 3])
    assert not f([4, 3])
    assert f([7, 3])
    assert not f([9, 3])
check(f)
"""
# ``assert not`` is four columns longer than ``assert``.
READ_COLUMNS = """
import sys
columns = []
def hook(event, args):
    if event == "exec" and hasattr(args[0], "co_positions"):
        lines = {}
        for line, _, column, _ in args[0].co_positions():
            if line and line > 1:
                lines[line] = max(lines.get(line, 0), column)
        if lines:
            columns[:] = [lines[line] for line in sorted(lines)]
sys.addaudithook(hook)
turn = -1
def f(numbers):
    global turn
    turn += 1
    return columns[turn] == min(columns)
"""


@pytest.mark.parametrize("tier", TIERS)
def test_columns_do_not_tell_what_is_asserted(tier: str) -> None:
    """It passed on the old code, which sent the calls as code with the positions of the tests."""
    assert_all_failed(judge_in(tier, [Step([job("columns", READ_COLUMNS, TESTS)])]))
