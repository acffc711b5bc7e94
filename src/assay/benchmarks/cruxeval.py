"""CRUXEval (Gu et al. 2024): predict what 800 short functions return, or an input for an output.

``cruxeval-o`` asks for the output as a literal, which is compared and never executed.
``cruxeval-i`` asks for a call of the function, which is executed. The expected output is in a
separate process.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.benchmarks import Description, benchmarks
from assay.benchmarks.support.cruxeval_prompts import INPUT, OUTPUT, Wording, build_strategies
from assay.data import codec, plain
from assay.datasets.catalogue import DataFile, pin, read_records
from assay.types import Answer, Benchmark, Cases, Limits, Problem, Tests

if TYPE_CHECKING:
    from pathlib import Path

    from assay.progress import Announce

FUNCTION, PUBLISHED = "f", "2024-01-05"
MAX_TOKENS = 2048  # upstream's for answers that reason first
LIMITS = Limits(cpu_s=3.0)  # upstream's, here as CPU time
EQUAL = "def matcher():\n    return lambda arguments, expected, got: got == expected\n"
DATA = pin(
    DataFile(
        name="cruxeval",
        path="cruxeval/cruxeval.jsonl",
        version="190faf16",
        licence="MIT",
        records=800,
        sha256="8368b81047dc5014e4caf5a2f97604eff7644e0ecd7415e3ceeb184bbc2e0c96",
        records_sha256="36007d9bcc6c3358115637de7c18a3de56407b9b93f211b270b6479884886aa2",
        urls=(
            "https://raw.githubusercontent.com/facebookresearch/cruxeval/"
            "190faf16d175b5847b0af05d937872b1fb395942/data/cruxeval.jsonl",
        ),
        size=186_873,
    )
)


@dataclass(frozen=True, slots=True)
class CruxEvalRecord:
    id: str
    code: str
    input: str
    output: str

    @property
    def task_id(self) -> str:
        return f"CRUXEval/{self.id.removeprefix('sample_')}"


def _output_problem(record: CruxEvalRecord) -> Problem:
    return Problem(
        task_id=record.task_id,
        prompt=f"{record.code}\nassert {FUNCTION}({record.input}) == ??",
        reference=record.output,
        tests=_tests(record, FUNCTION, "", Answer("literal", FUNCTION)),
        date=PUBLISHED,
    )


def _input_problem(record: CruxEvalRecord) -> Problem:
    return Problem(
        task_id=record.task_id,
        prompt=f"{record.code}\nassert {FUNCTION}(??) == {record.output}",
        reference=f"{FUNCTION}({record.input})",
        tests=_tests(record, "answer", record.code, Answer("call", FUNCTION)),
        date=PUBLISHED,
    )


def _tests(record: CruxEvalRecord, entry_point: str, preamble: str, answer: Answer) -> Tests:
    """Return tests that call the answer without arguments and expect the output."""
    inputs = {"base": [plain.encode([])]}
    expected = {"base": [plain.encode(ast.literal_eval(record.output))]}
    cases = Cases(inputs, expected, codec.digest([inputs, expected]))
    return Tests(entry_point, EQUAL, preamble, "separated", cases, answer=answer)


def _load(name: str, wording: Wording, announce: Announce, data_dir: Path | None) -> Benchmark:
    make = _output_problem if wording is OUTPUT else _input_problem
    return Benchmark(
        name=name,
        version=DATA.version,
        data_sha256=DATA.sha256,
        problems=tuple(map(make, read_records(CruxEvalRecord, DATA, announce, data_dir))),
        limits=LIMITS,
        max_tokens=MAX_TOKENS,
        strategies=build_strategies(wording),
        only_own_strategies=True,
        default_strategy="upstream-cot",
    )


for _name, _wording in (("cruxeval-i", INPUT), ("cruxeval-o", OUTPUT)):
    _description = Description(
        DATA.records,
        DATA,
        group="reasoning",
        suites=("full",),
        strategies=("upstream-cot", "upstream"),
    )
    benchmarks.register(_name, _description)(functools.partial(_load, _name, _wording))
