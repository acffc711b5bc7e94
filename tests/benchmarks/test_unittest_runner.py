"""Tests that are a unittest class: nothing that a program raises ends one without a failure."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.benchmarks.support.program_code import RUNNER
from assay.sandbox import Sandbox, open_sandbox
from assay.types import Job, Limits, Program, Tests

CLASS = """
import unittest


class TestCases(unittest.TestCase):
    def PLACE(self):
        self.assertEqual(f(1), 2)

    def test_parts(self):
        for number in range(2):
            with self.subTest(number=number):
                self.assertEqual(f(number), number + 1)
"""
PLACES = ("test_whole", "setUp", "tearDown")
RAISED = (
    "unittest.case._ShouldStop", "unittest.case._ShouldStop('x') from None", "Own",
    "unittest.SkipTest('x')", "Skipped", "unittest.case._UnexpectedSuccess", "KeyboardInterrupt",
    "SystemExit(0)", "GeneratorExit", "asyncio.CancelledError",
    "BaseExceptionGroup('', [unittest.SkipTest('x')])",
)  # fmt: skip
PROGRAM = """
import asyncio, unittest.case
class Own(unittest.case._ShouldStop): pass
class Skipped(unittest.SkipTest, AssertionError): pass
def f(number):
    raise {}
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    opened = open_sandbox("process", 2)
    yield opened
    opened.close()


def job(name: str, code: str, place: str) -> Job:
    tests = Tests("f", CLASS.replace("PLACE", place) + RUNNER, integrity="shared")
    return Job(name, 0, Program(code, "x"), tests, Limits(cpu_s=10, wall_s=30))


def test_no_exception_of_a_program_ends_a_test_as_passed(sandbox: Sandbox) -> None:
    """The exception by which unittest itself ends a test let it pass."""
    jobs = [
        job(f"{raised} in {place}", PROGRAM.format(raised), place)
        for raised in RAISED
        for place in PLACES
    ]
    jobs.append(job("honest", "def f(number):\n    return number + 1\n", "test_whole"))
    passed = [v.task_id for v in sandbox.judge(jobs) if v.status != "fail"]
    assert passed == ["honest"]
