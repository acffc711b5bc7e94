"""A tiny built-in benchmark for demonstrations and tests without a download."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.benchmarks import Description, benchmarks
from assay.benchmarks.support.declaring import SHORT_TESTS
from assay.benchmarks.support.mini_problems import read_problems
from assay.benchmarks.support.program_code import preamble_of
from assay.data import codec
from assay.data.test_code import code_tests
from assay.types import Benchmark, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from assay.progress import Announce

TESTED = ("entry_point", "code", "preamble", "integrity", "cases")


@benchmarks.register("mini", Description(20, package_licence="Apache-2.0"))
def load(_announce: Announce, _data_dir: Path | None) -> Benchmark:
    problems = tuple(
        Problem(
            task_id=f"mini/{number}",
            prompt=prompt,
            reference=prompt + body,
            tests=code_tests(entry_point, tests, preamble_of(prompt, entry_point)),
        )
        for number, (entry_point, prompt, body, tests) in enumerate(read_problems())
    )
    data = [_record(problem) for problem in problems]
    return Benchmark(
        "mini", version="1", data_sha256=codec.digest(data), problems=problems,
        time_rule=SHORT_TESTS,
    )  # fmt: skip


def _record(problem: Problem) -> object:
    """Return what the digest of the data covers, which does not depend on assay's types."""
    record, tests = codec.to_json(problem), codec.to_json(problem.tests)
    return {
        **{name: record[name] for name in ("task_id", "prompt", "reference")},
        "tests": {name: tests[name] for name in TESTED},
    }
