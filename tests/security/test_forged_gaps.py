"""Texts that fill a gap may leave the function around them. None of these forges a pass."""

from __future__ import annotations

import assay
from assay import benchmarks
from assay.extract import extract

REST = "\n\ndef rest(numbers, idx=0):\n    if 1:\n"  # takes the lines after the gap
EQUAL = "\n\nclass Equal(str):\n    def __eq__(self, other):\n        return True\n"
# What the line ``    for idx, elem in enumerate(numbers):`` of HumanEval/0 becomes.
MIDDLES = {
    "an object that equals everything": f"    return Equal()\n{EQUAL}{REST}",
    "the end of the process": "    import os\n    os._exit(0)\n    if 1:\n",
    "an exit": "    raise SystemExit(0)\n    if 1:\n",
    "a suffix in a text": '    return Equal()\n\n\nclass Equal(str):\n    """',
    "a suffix in a comment": "    return True  #",
    "the function again": f"    pass\n{EQUAL}has_close_elements = lambda *_: Equal()\n{REST}",
    "other tests": f"    return None\n\n\ndef check(candidate):\n    pass\n{REST}",
    "frames": (
        "    import sys\n    frame = sys._getframe()\n    while frame:\n"
        "        frame.f_globals['check'] = lambda _: None\n"
        "        frame = frame.f_back\n    if 1:\n"
    ),
}


def test_forged_middles_do_not_pass() -> None:
    problem = benchmarks.load("humaneval-infilling-single-line").problems[0]
    programs = {name: extract(text, problem, "infill").code for name, text in MIDDLES.items()}
    programs["honest"] = problem.reference
    with assay.Judge("humaneval") as judge:
        verdicts = judge.judge([("HumanEval/0", code) for code in programs.values()])
    found = {name: verdict.status for name, verdict in zip(programs, verdicts, strict=True)}
    assert found == {**dict.fromkeys(MIDDLES, "fail"), "honest": "pass"}
    assert {verdict.integrity for verdict in verdicts} == {"separated"}
