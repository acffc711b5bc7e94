"""CRUXEval (Gu et al. 2024): predict what 800 short functions return, or an input for an output.

``cruxeval-o`` asks for the output as a literal, which is compared and never executed.
``cruxeval-i`` asks for a call of the function, which is executed. The expected output is in a
separate process.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass

from assay.benchmarks import benchmarks
from assay.benchmarks.support.cruxeval_prompts import INPUT, OUTPUT, Wording, build_strategies
from assay.benchmarks.support.declaring import per_record, pin_commit
from assay.data import codec, plain
from assay.types import Answer, Cases, Limits, Problem, Tests

FUNCTION, PUBLISHED = "f", "2024-01-05"
MAX_TOKENS = 2048  # upstream's for answers that reason first
LIMITS = Limits(cpu_s=3.0)  # upstream's, here as CPU time
EQUAL = "def matcher():\n    return lambda arguments, expected, got: got == expected\n"
DATA = pin_commit(
    "facebookresearch/cruxeval",
    "190faf16d175b5847b0af05d937872b1fb395942",
    "data/cruxeval.jsonl",
    "8368b81047dc5014e4caf5a2f97604eff7644e0ecd7415e3ceeb184bbc2e0c96",
    "36007d9bcc6c3358115637de7c18a3de56407b9b93f211b270b6479884886aa2",
    name="cruxeval", path="cruxeval/cruxeval.jsonl", records=800, size=186_873,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CruxEvalRecord:
    id: str
    code: str
    input: str
    output: str

    @property
    def task_id(self) -> str:
        return f"CRUXEval/{self.id.removeprefix('sample_')}"


def _problem(wording: Wording, record: CruxEvalRecord) -> Problem:
    code, call = record.code, f"{FUNCTION}({record.input})"
    if wording is OUTPUT:
        question, reference = f"{call} == ??", record.output
        tests = _tests(record, FUNCTION, "", Answer("literal", FUNCTION))
    else:
        question, reference = f"{FUNCTION}(??) == {record.output}", call
        tests = _tests(record, "answer", code, Answer("call", FUNCTION))
    prompt = f"{code}\nassert {question}"
    return Problem(record.task_id, prompt, reference=reference, tests=tests, date=PUBLISHED)


def _tests(record: CruxEvalRecord, entry_point: str, preamble: str, answer: Answer) -> Tests:
    """Return tests that call the answer without arguments and expect the output."""
    inputs = {"base": [plain.encode([])]}
    expected = {"base": [plain.encode(ast.literal_eval(record.output))]}
    cases = Cases(inputs, expected, codec.digest([inputs, expected]))
    return Tests(entry_point, EQUAL, preamble, "separated", cases, answer=answer)


for _name, _wording in (("cruxeval-i", INPUT), ("cruxeval-o", OUTPUT)):
    benchmarks.declare(
        DATA, CruxEvalRecord, per_record(functools.partial(_problem, _wording)), _name,
        group="reasoning", suites=("full",), upstream=("upstream-cot", "upstream"), limits=LIMITS,
        max_tokens=MAX_TOKENS, strategies=build_strategies(_wording), only_own_strategies=True,
        default_strategy="upstream-cot",
    )  # fmt: skip
