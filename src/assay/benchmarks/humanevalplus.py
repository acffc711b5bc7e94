"""HumanEval+ (Liu et al. 2023): HumanEval with many more inputs; and its small selection, Mini."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.benchmarks import benchmarks
from assay.benchmarks._evalplus import LIMITS, SAME, case_tests
from assay.benchmarks._pinned import HUMANEVALPLUS, HUMANEVALPLUS_MINI
from assay.benchmarks._prompt_code import preamble_of
from assay.benchmarks.data import DataFile, records
from assay.types import Benchmark, Problem

if TYPE_CHECKING:
    from assay.benchmarks import Announce

# A zero is right if the polynomial is small there, whichever zero it is.
SPECIAL = {
    "find_zero": "abs(sum(c * math.pow(got, i) for i, c in enumerate(arguments[0]))) <= tolerance"
}


@benchmarks.register("humanevalplus")
def load(announce: Announce) -> Benchmark:
    return _benchmark(HUMANEVALPLUS, announce)


@benchmarks.register("humanevalplus-mini")
def load_mini(announce: Announce) -> Benchmark:
    return _benchmark(HUMANEVALPLUS_MINI, announce)


def _benchmark(data: DataFile, announce: Announce) -> Benchmark:
    return Benchmark(
        name=data.name,
        version=data.version,
        data_sha256=data.sha256,
        problems=tuple(_problem(record) for record in records(data, announce)),
        limits=LIMITS,
    )


def _problem(record: dict[str, Any]) -> Problem:
    prompt, entry_point = record["prompt"], record["entry_point"]
    same = SPECIAL.get(entry_point, SAME)
    return Problem(
        task_id=record["task_id"],
        prompt=prompt,
        reference=prompt + record["canonical_solution"],
        tests=case_tests(record, preamble_of(prompt, entry_point), same),
    )
