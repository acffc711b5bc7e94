"""HumanEval (Chen et al. 2021): 164 functions to complete from signature and docstring."""

from __future__ import annotations

from dataclasses import dataclass, replace

from assay.benchmarks import benchmarks
from assay.benchmarks.support.declaring import SHORT_TESTS, per_record
from assay.benchmarks.support.evalplus import FUNCTIONS
from assay.benchmarks.support.program_code import preamble_of
from assay.data.test_code import code_tests
from assay.datasets.pinned import HUMANEVAL
from assay.types import Problem

SLOW = ("HumanEval/129",)  # enumerating all paths is right and takes 4 s, the reference 3 ms


@dataclass(frozen=True, slots=True)
class HumanEvalRecord:
    task_id: str
    prompt: str
    entry_point: str
    canonical_solution: str
    test: str


def _problem(record: HumanEvalRecord) -> Problem:
    prompt, entry_point = record.prompt, record.entry_point
    code = f"{record.test}\ncheck({entry_point})\n"
    return Problem(
        task_id=record.task_id,
        prompt=prompt,
        reference=prompt + record.canonical_solution,
        tests=code_tests(entry_point, code, preamble_of(prompt, entry_point)),
    )


benchmarks.declare(
    HUMANEVAL, HumanEvalRecord, per_record(_problem), strategies=FUNCTIONS,
    time_rule=replace(SHORT_TESTS, exempt=SLOW),
)  # fmt: skip
