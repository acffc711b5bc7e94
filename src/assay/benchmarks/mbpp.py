"""MBPP (Austin et al. 2021): 974 short tasks in words, each with three assertions.

The paper's splits are benchmarks of their own: ``mbpp`` is the test split, tasks 11 to 510.
``mbpp-sanitized`` are the 427 tasks that its authors verified by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.benchmarks import benchmarks
from assay.benchmarks.support.test_code import code_tests, function_under_test
from assay.datasets.catalogue import DataFile, records
from assay.datasets.pinned import MBPP, MBPP_SANITIZED
from assay.types import Benchmark, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from assay.benchmarks import Loader
    from assay.progress import Announce

TEST = range(11, 511)
SPLITS = {
    "mbpp": TEST,
    "mbpp-prompt": range(1, 11),
    "mbpp-validation": range(511, 601),
    "mbpp-train": range(601, 975),
    "mbpp-all": range(1, 975),
}


def _loader(name: str, data: DataFile, task_ids: range) -> Loader:
    def load(announce: Announce, data_dir: Path | None) -> Benchmark:
        found = [r for r in records(data, announce, data_dir) if r["task_id"] in task_ids]
        problems = tuple(_problem(record) for record in found)
        return Benchmark(name, data.version, data.sha256, problems)

    return load


def _problem(record: dict[str, Any]) -> Problem:
    assertions = [assertion.strip() for assertion in record["test_list"]]
    # Not before the program: some set-ups build objects of classes that the program defines.
    set_up = [record.get("test_setup_code", ""), *record.get("test_imports", [])]
    entry_point = function_under_test(assertions)
    words = (record.get("text") or record["prompt"]).strip()
    return Problem(
        task_id=f"Mbpp/{record['task_id']}",
        prompt=prompt_of(words, entry_point, assertions),
        reference=_unix(record["code"]),
        tests=code_tests(entry_point, _unix("\n".join([*set_up, *assertions]))),
    )


def prompt_of(words: str, entry_point: str, assertions: list[str]) -> str:
    """A docstring that says all: the task, the function's name, what it must satisfy."""
    asked = "\n".join(assertions)
    return f'"""\n{words}\nThe function is called {entry_point} and satisfies:\n\n{asked}\n"""\n'


def _unix(code: str) -> str:
    return code.replace("\r\n", "\n") + "\n"


benchmarks.register("mbpp-test")(_loader("mbpp", MBPP, TEST))
for _name, _task_ids in SPLITS.items():
    benchmarks.register(_name)(_loader(_name, MBPP, _task_ids))
benchmarks.register("mbpp-sanitized")(_loader("mbpp-sanitized", MBPP_SANITIZED, SPLITS["mbpp-all"]))
