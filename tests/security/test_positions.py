"""Where the tests' calls stand in their source, and our own code on the host, is private."""

from __future__ import annotations

import pytest

from assay.data import text_cases
from assay.types import Job, Program, Tests
from tests.security.in_tiers import LIMITS, TIERS, Step, assert_all_failed, job, judge_in

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
    """Calls sent as code with the positions of the tests let this program pass."""
    assert_all_failed(judge_in(tier, [Step([job("columns", READ_COLUMNS, TESTS)])]))


# All that a program can find out about where our code is. The interpreter's path is known.
FIND_PATHS = """
import gc, sys, traceback, types
def find_paths():
    frame, texts = sys._getframe(), []
    texts += [line for line in traceback.format_stack()]
    while frame:
        texts.append(frame.f_code.co_filename)
        frame = frame.f_back
    for module in list(sys.modules.values()):
        for name in ("__file__", "__path__", "__spec__", "__loader__", "__cached__"):
            texts.append(str(getattr(module, name, "")))
    for one in gc.get_objects():
        if isinstance(one, types.FunctionType):
            texts.append(one.__code__.co_filename)
    texts += [*sys.argv[1:], *sys.orig_argv[1:], *sys.path, *sys.path_importer_cache]
    try:
        texts += open("/proc/self/cmdline").read().split("\\0")[1:]
    except OSError:
        pass
    return sorted({text for text in texts if "/assay" in text and sys.prefix not in text})
"""
FUNCTION = f"{FIND_PATHS}\ndef f():\n    return str(find_paths())\n"


@pytest.mark.parametrize("tier", TIERS)
def test_programs_do_not_see_where_the_sandboxs_code_is(tier: str) -> None:
    tests = "assert f() == '[]', f()"
    script = f"{FIND_PATHS}\nprint(find_paths())\n"
    texts = Tests("", "", integrity="separated", texts=text_cases.pack([("", "[]\n")]))
    jobs = [
        job("separated", FUNCTION, tests),
        job("shared", FUNCTION, tests, "shared"),
        job(
            "tests",
            "def f(): return 1",
            f"{FIND_PATHS}\nassert f() and str(find_paths()) == '[]', str(find_paths())",
        ),
        Job("script", 0, Program(script, "x"), texts, LIMITS),
    ]
    found = judge_in(tier, [Step(jobs)])
    assert {v.task_id: v.status for v in found} == dict.fromkeys(
        ("separated", "shared", "tests", "script"), "pass"
    ), [v.detail for v in found]
