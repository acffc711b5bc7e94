"""HumanEval-Infilling (Bavarian et al. 2022): fill in what is missing in solutions of HumanEval.

A line is missing (single-line), several lines (multi-line), or any part of the code (random-span,
and one such part per function in random-span-light). The model gets the code before and after the
gap in the form of its own fill-in-the-middle tokens.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

from assay.benchmarks import benchmarks
from assay.benchmarks.support.declaring import SHORT_TESTS, name_strategies, pin_commit
from assay.benchmarks.support.program_code import preamble_of
from assay.data.test_code import code_tests
from assay.types import Problem, Prompt, PromptForm, Tests

PUBLISHED = "2022-07-28"
SLOW = "HumanEval/129"  # as in HumanEval
RULE = "infill"  # of extraction
# Of every set: file, records, bytes, digest of the file, digest of the records.
PINS = {
    "single-line": (
        "SingleLineInfilling", 1033, 75_058,
        "1277073e7ddce163ef68598c2bca777f688a53df99422f097e37362090f88e1f",
        "375735c19f075d472456eb3e12c3a4cc25b2e8f3ad6624292d5def39ed5e84af",
    ),
    "multi-line": (
        "MultiLineInfilling", 5815, 170_082,
        "2f341612eee1d35da1357a4f365e0c0b3ba6e2b62eb491e88aaefa4855af0349",
        "c640cf1aa9f20cbc54adfe71b053a6871a5ff53007c52a6df5449898c0126f13",
    ),
    "random-span": (
        "RandomSpanInfilling", 1640, 89_591,
        "b4f330d8a8ff97bf85d9def497dffcae4d741e506449386a877236e422e33e8d",
        "e35c8cba3041ed885a55bfd7bcf2145d378077b1375eba2edaee03e395d56fc1",
    ),
    "random-span-light": (
        "RandomSpanInfillingLight", 164, 45_730,
        "1432250ecac0cb56e6f97f8faf0970419ef892a98fda7e1f5aa4c4b87209b760",
        "aa4ad14eb6f4f53c21084cd59a9cac1015bef4cbca3e3c85dab29d8bf76ab537",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class InfillingRecord:
    task_id: str
    entry_point: str
    prompt: str
    suffix: str
    canonical_solution: str
    test: str

    @property
    def whole(self) -> str:
        """Return the program without a gap."""
        return f"{self.prompt}{self.canonical_solution}{self.suffix}"

    @property
    def original(self) -> str:
        """Return the task of HumanEval that the program solves."""
        return "/".join(self.task_id.split("/")[1:3])


@functools.lru_cache(1 << 12)
def _tests(whole: str, test: str, entry_point: str) -> Tests:
    """Return the tests. Many problems are gaps in the same program, so each is analysed once."""
    code = f"{test}\ncheck({entry_point})\n"
    return code_tests(entry_point, code, preamble_of(whole, entry_point))


def _problem(record: InfillingRecord) -> Problem:
    return Problem(
        task_id=record.task_id,
        prompt=record.prompt,
        reference=record.whole,
        tests=_tests(record.whole, record.test, record.entry_point),
        cluster=record.original,
        date=PUBLISHED,
        only_rule=RULE,
        suffix=record.suffix,
    )


def _build(records: list[InfillingRecord]) -> dict[str, Any]:
    slow = tuple(record.task_id for record in records if record.original == SLOW)
    problems = tuple(map(_problem, records))
    return {"problems": problems, "time_rule": replace(SHORT_TESTS, exempt=slow)}


def _ask(problem: Problem, _form: PromptForm) -> Prompt:
    """Ask as upstream does: prefix and suffix, until the model itself ends the middle."""
    return Prompt(text=problem.prompt, suffix=problem.suffix)


for _set, (_file, _records, _size, *_digests) in PINS.items():
    _path = f"HumanEval-{_file}.jsonl.gz"
    _data = pin_commit(
        "openai/human-eval-infilling", "88062ff9859c875d04db115b698ed4b0f0395170", f"data/{_path}",
        *_digests, name=f"humaneval-infilling-{_set}", path=f"infilling/{_path}", records=_records,
        size=_size,
    )  # fmt: skip
    benchmarks.declare(
        _data, InfillingRecord, _build, group="infilling", upstream=(), prompt_form="infill",
        strategies=name_strategies(standard=_ask), only_own_strategies=True,
    )  # fmt: skip
