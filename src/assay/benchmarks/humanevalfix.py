"""HumanEvalFix (Muennighoff et al. 2023): 164 functions of HumanEval with a bug to find and fix.

``humanevalfix-tests`` shows the tests with the function, ``humanevalfix-docs`` its docstring.
``humanevalfix`` is the former, as upstream's leaderboards use it. Scores are broken down by the
type of the bug and by what it causes.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from assay.benchmarks import benchmarks
from assay.benchmarks.support.declaring import SHORT_TESTS, name_strategies, pin_commit
from assay.benchmarks.support.program_code import preamble_of
from assay.data.test_code import integrity_of
from assay.datasets.catalogue import read_records
from assay.types import Message, Problem, Prompt, PromptForm, Tests

if TYPE_CHECKING:
    from pathlib import Path

Kind = Literal["tests", "docs"]
PUBLISHED = "2023-08-14"
SLOW = ("Python/129",)  # as in HumanEval
STOP = ("\nclass", "\ndef", "\n#", "\n@", "\nprint", "\nif", "\nassert")
# Upstream's, before every program, without numpy, which no task needs.
IMPORTS = """\
import math
import re
import sys
import copy
import datetime
import itertools
import collections
import heapq
import statistics
import functools
import hashlib
import string
from typing import *
from collections import *
"""
DATA = pin_commit(
    "bigcode-project/octopack",
    "e17a8f6470264286bc6a52eb8263582083bf3bf6",
    "evaluation/create/humaneval-x/data/python/data/humanevalpack.jsonl",
    "b1376d72be4bd016a62ad043d9de3846edb8d63edf1222da802a31330c14c3a7",
    "45d6c11ceba00f9f12ed4b6b112edb21df1cb45927c3c567a3274e7231cde648",
    name="humanevalpack-python", path="humanevalpack/humanevalpack-python.jsonl.gz", records=164,
    size=537_907,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class HumanEvalFixRecord:
    task_id: str
    prompt: str
    declaration: str
    canonical_solution: str
    buggy_solution: str
    bug_type: str
    failure_symptoms: str
    test: str
    entry_point: str

    def begin(self, kind: Kind) -> str:
        """Return the beginning of the function, which answers begin with."""
        return self.prompt if kind == "docs" else self.declaration


def _problem(record: HumanEvalFixRecord, kind: Kind) -> Problem:
    begin = record.begin(kind)
    number = record.task_id.partition("/")[2]
    return Problem(
        task_id=record.task_id,
        prompt=begin,
        reference=begin + record.canonical_solution,
        tests=_tests(record),
        cluster=f"HumanEval/{number}",
        date=PUBLISHED,
        labels={"bug type": record.bug_type, "symptom": record.failure_symptoms},
    )


def _tests(record: HumanEvalFixRecord) -> Tests:
    prompt_code = preamble_of(record.prompt, record.entry_point)
    preamble, code = f"{IMPORTS}{prompt_code}", f"{record.test}\n"
    integrity = integrity_of(code, preamble, record.entry_point)
    return Tests(record.entry_point, code, preamble, integrity, prompt_code=prompt_code)


def _build(kind: Kind, records: list[HumanEvalFixRecord]) -> dict[str, Any]:
    by_task = {record.task_id: record for record in records}
    return {
        "problems": tuple(_problem(record, kind) for record in records),
        "strategies": name_strategies(
            standard=functools.partial(_ask, PLAIN, by_task, kind),
            scot=functools.partial(_ask, FIND_FIRST, by_task, kind),
            upstream=functools.partial(_ask_upstream, by_task, kind),
        ),
    }


def _ask_upstream(
    records: dict[str, HumanEvalFixRecord], kind: Kind, problem: Problem, form: PromptForm
) -> Prompt:
    """Ask as bigcode-evaluation-harness does with its prompt ``instruct``.

    A base model continues the beginning of the function. A chat cannot be begun for the model.
    """
    record = records[problem.task_id]
    begin = record.begin(kind)
    context = begin + record.buggy_solution
    if kind == "tests":
        context = f"{context}\n{record.test}"
    question = f"{context}\nFix bugs in {record.entry_point}."
    if form == "text":
        return Prompt(text=f"{question}\n\n{begin}".strip(), stop=STOP)
    return Prompt(messages=(Message("user", question.strip()),))


PLAIN = "This Python function has a bug. Fix it."
FIND_FIRST = (
    "This Python function has a bug. First find it: say which line is wrong and why. Then fix it."
)
ANSWER = "Answer with the whole corrected function in one Python code block."


def _ask(
    words: str,
    records: dict[str, HumanEvalFixRecord],
    kind: Kind,
    problem: Problem,
    form: PromptForm,
) -> Prompt:
    if form == "text":
        return _ask_upstream(records, kind, problem, form)
    record = records[problem.task_id]
    buggy = (record.begin(kind) + record.buggy_solution).strip()
    question = f"{words} {ANSWER}\n\n```python\n{buggy}\n```"
    if kind == "tests":
        question += f"\n\nIt must pass these tests:\n\n```python\n{record.test.strip()}\n```"
    return Prompt(messages=(Message("user", question),))


def read_buggy_programs(data_dir: Path | None = None) -> dict[str, str]:
    """Return the programs with their bugs, by task."""
    records = read_records(HumanEvalFixRecord, DATA, data_dir=data_dir)
    return {record.task_id: record.prompt + record.buggy_solution for record in records}


_kinds: tuple[Kind, ...] = get_args(Kind)
for _name, _kind in (
    *((f"humanevalfix-{kind}", kind) for kind in _kinds),
    ("humanevalfix", "tests"),
):
    benchmarks.declare(
        DATA, HumanEvalFixRecord, functools.partial(_build, _kind), _name,
        of=f"humanevalfix-{_kind}", group="repair",
        suites=("full",) if _name == "humanevalfix" else (), only_own_strategies=True,
        time_rule=replace(SHORT_TESTS, exempt=SLOW),
    )  # fmt: skip
