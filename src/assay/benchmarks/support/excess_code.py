"""ExcessCode of CanItEdit: lines of a passed program that its tests do not reach.

The program and its tests run once more in the sandbox, under coverage. The number is upstream's:
uncovered lines divided by the lines of ``difflib.Differ`` between the file before and after the
change. These are all lines of the diff, unchanged ones and hints included, although upstream's
documentation says changed lines.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from assay.data import codec, plain
from assay.types import Cases, Measure, Tests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.types import Problem

NAME = "excess code"
VERSION = 1
MOST_LINES = 10_000_000  # a program can report any number
ENTRY_POINT = "measure"
GROUP = "lines"
START = "### START TESTS ###"
NO_ARGUMENTS = {GROUP: [plain.encode([])]}
MATCHER = "def matcher():\n    return lambda arguments, expected, got: True\n"
# As upstream: one file, run as a script, with its .coveragerc. The report shows missing lines as
# ranges, and upstream counts every line of a range, also those without a statement. The diff can
# take long, so it is also made in the sandbox.
PROBE = """
def measure():
    import coverage, difflib, random, sys, types
    import numpy

    difference = list(difflib.Differ().compare(BEFORE.splitlines(), PROGRAM.splitlines()))
    path, text = "program.py", PROGRAM + "\\n" + TESTS
    with open(path, "w") as file:
        file.write(text)
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    random.seed(0)
    numpy.random.seed(0)
    found = coverage.Coverage(data_file=None, config_file=False, include=[path])
    found.exclude(r"@(abc\\.)?abstractmethod")
    found.start()
    try:
        exec(compile(text, path, "exec"), module.__dict__)
    finally:
        found.stop()
    ranges = filter(None, found.analysis2(path)[4].split(", "))
    ends = [[int(line) for line in one.split("-")] for one in ranges]
    return [sum(one[-1] - one[0] + 1 for one in ends), len(difference)]
"""


def excess_code(before: Mapping[str, str]) -> Measure:
    """Return the measure. ``before`` has the file that was to be changed, by task."""
    return Measure(NAME, VERSION, functools.partial(_probe, before), _read, ("coverage",))


def _probe(before: Mapping[str, str], problem: Problem, program: str) -> tuple[str, Tests]:
    """Return a program that counts the lines that were not reached, and those of the diff."""
    tests = problem.tests.code
    tests = tests[tests.index(START) :]  # what precedes them is for the judge
    texts = {"BEFORE": before[problem.task_id], "PROGRAM": program, "TESTS": tests}
    code = "".join(f"{name} = {text!r}\n" for name, text in texts.items())
    cases = Cases(NO_ARGUMENTS, {}, codec.digest(NO_ARGUMENTS))
    return f"{code}{PROBE}", Tests(ENTRY_POINT, MATCHER, integrity="separated", cases=cases)


def _read(outputs: Cases) -> float | None:
    """Return the share, or None if the outputs are not two counts."""
    counts = outputs.expected[GROUP][0]  # as it is encoded: a program may have sent anything
    if type(counts) is not list or len(counts) != 2 or {*map(type, counts)} != {int}:
        return None
    uncovered, lines = counts
    return uncovered / lines if 0 <= uncovered <= MOST_LINES and 0 < lines <= MOST_LINES else None
