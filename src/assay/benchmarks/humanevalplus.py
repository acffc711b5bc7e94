"""HumanEval+ (Liu et al. 2023): HumanEval with many more inputs; and its small selection, Mini."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.benchmarks import Description, benchmarks
from assay.benchmarks.support.evalplus import LIMITS, MATCHER, EvalPlusRecord, case_tests
from assay.benchmarks.support.evalplus_prompts import FUNCTIONS
from assay.benchmarks.support.prompt_code import preamble_of
from assay.datasets.catalogue import DataFile, read_records
from assay.datasets.pinned import HUMANEVALPLUS, HUMANEVALPLUS_MINI
from assay.types import Benchmark, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from assay.progress import Announce

# Any zero of the polynomial is right, if the polynomial is small there. Closeness to the
# reference's zero is not enough: a steep polynomial is not small there. Since Python 3.12, ``sum``
# has no rounding errors that cancel the last digits, so that no float is a zero of the steepest
# polynomials. Then a value must be as good as the reference's. In Python 3.11, all values of the
# reference are within the tolerance, so the second condition changes nothing.
ZERO_MATCHER = """
import math


def matcher():
    return lambda arguments, expected, got: size(arguments, got) <= allowed(arguments, expected)


def explain(arguments, expected, got):
    return (
        f"the polynomial is {size(arguments, got)!r} at {got!r}; at most "
        f"{allowed(arguments, expected)!r} is allowed, as at {expected!r}"
    )


def allowed(arguments, expected):
    return max(ATOL, size(arguments, expected))


def size(arguments, x):
    return abs(value(arguments[0], x))


def value(coefficients, x):
    return sum(c * math.pow(x, i) for i, c in enumerate(coefficients))
"""
SPECIAL = {"find_zero": ZERO_MATCHER}


@benchmarks.register(
    "humanevalplus",
    Description(164, HUMANEVALPLUS, suites=("core", "full"), strategies=("upstream",)),
)
def load(announce: Announce, data_dir: Path | None) -> Benchmark:
    return _benchmark(HUMANEVALPLUS, announce, data_dir)


@benchmarks.register(
    "humanevalplus-mini", Description(164, HUMANEVALPLUS_MINI, strategies=("upstream",))
)
def load_mini(announce: Announce, data_dir: Path | None) -> Benchmark:
    return _benchmark(HUMANEVALPLUS_MINI, announce, data_dir)


def _benchmark(data: DataFile, announce: Announce, data_dir: Path | None) -> Benchmark:
    return Benchmark(
        name=data.name,
        version=data.version,
        data_sha256=data.sha256,
        problems=tuple(map(_problem, read_records(EvalPlusRecord, data, announce, data_dir))),
        limits=LIMITS,
        strategies=FUNCTIONS,
    )


def _problem(record: EvalPlusRecord) -> Problem:
    prompt, entry_point = record.prompt, record.entry_point
    matcher = SPECIAL.get(entry_point, MATCHER)
    return Problem(
        task_id=record.task_id,
        prompt=prompt,
        reference=prompt + record.canonical_solution,
        tests=case_tests(record, preamble_of(prompt, entry_point), matcher=matcher),
    )
