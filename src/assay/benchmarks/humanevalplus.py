"""HumanEval+ (Liu et al. 2023): HumanEval with many more inputs; and its small selection, Mini."""

from __future__ import annotations

from assay.benchmarks import benchmarks
from assay.benchmarks.support.declaring import per_record
from assay.benchmarks.support.evalplus import (
    FUNCTIONS,
    LIMITS,
    MATCHER,
    EvalPlusRecord,
    case_tests,
)
from assay.benchmarks.support.program_code import preamble_of
from assay.datasets.pinned import HUMANEVALPLUS, HUMANEVALPLUS_MINI
from assay.types import Problem

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


def _problem(record: EvalPlusRecord) -> Problem:
    prompt, entry_point = record.prompt, record.entry_point
    matcher = SPECIAL.get(entry_point, MATCHER)
    return Problem(
        task_id=record.task_id,
        prompt=prompt,
        reference=prompt + record.canonical_solution,
        tests=case_tests(record, preamble_of(prompt, entry_point), matcher=matcher),
    )


for _data, _suites in ((HUMANEVALPLUS, ("core", "full")), (HUMANEVALPLUS_MINI, ())):
    benchmarks.declare(
        _data, EvalPlusRecord, per_record(_problem), suites=_suites, limits=LIMITS,
        strategies=FUNCTIONS,
    )  # fmt: skip
