"""HumanEval (Chen et al. 2021): 164 functions to complete from signature and docstring."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from assay.benchmarks import Description, benchmarks
from assay.benchmarks.support.evalplus_prompts import FUNCTIONS
from assay.benchmarks.support.prompt_code import preamble_of
from assay.benchmarks.support.time_rule import SHORT_TESTS
from assay.data.test_code import code_tests
from assay.datasets.catalogue import read_records
from assay.datasets.pinned import HUMANEVAL
from assay.types import Benchmark, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from assay.progress import Announce


SLOW = ("HumanEval/129",)  # enumerating all paths is right and takes 4 s, the reference 3 ms


@dataclass(frozen=True, slots=True)
class HumanEvalRecord:
    task_id: str
    prompt: str
    entry_point: str
    canonical_solution: str
    test: str


@benchmarks.register("humaneval", Description(164, HUMANEVAL, strategies=("upstream",)))
def load(announce: Announce, data_dir: Path | None) -> Benchmark:
    return Benchmark(
        name="humaneval",
        version=HUMANEVAL.version,
        data_sha256=HUMANEVAL.sha256,
        problems=tuple(map(_problem, read_records(HumanEvalRecord, HUMANEVAL, announce, data_dir))),
        time_rule=replace(SHORT_TESTS, exempt=SLOW),
        strategies=FUNCTIONS,
    )


def _problem(record: HumanEvalRecord) -> Problem:
    prompt, entry_point = record.prompt, record.entry_point
    code = f"{record.test}\ncheck({entry_point})\n"
    return Problem(
        task_id=record.task_id,
        prompt=prompt,
        reference=prompt + record.canonical_solution,
        tests=code_tests(entry_point, code, preamble_of(prompt, entry_point)),
    )
