"""MBPP (Austin et al. 2021): 974 short tasks in words, each with three assertions.

The paper's splits are separate benchmarks: ``mbpp`` is the test split, tasks 11 to 510.
``mbpp-sanitized`` are the 427 tasks that its authors verified by hand.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.benchmarks import benchmarks
from assay.benchmarks.support.declaring import SHORT_TESTS, name_strategies
from assay.data.test_code import code_tests, function_under_test
from assay.datasets.pinned import MBPP, MBPP_SANITIZED
from assay.types import Message, Problem, Prompt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from assay.types import PromptForm

EXAMPLES = (2, 3, 4)  # in the paper's prompts
ALL = range(1, 975)
# By name: the benchmark's own name, its file, its tasks, and how many of them the file has.
SPLITS = {
    "mbpp-test": ("mbpp", MBPP, range(11, 511), 500),
    "mbpp": ("mbpp", MBPP, range(11, 511), 500),
    "mbpp-prompt": ("mbpp-prompt", MBPP, range(1, 11), 10),
    "mbpp-validation": ("mbpp-validation", MBPP, range(511, 601), 90),
    "mbpp-train": ("mbpp-train", MBPP, range(601, 975), 374),
    "mbpp-all": ("mbpp-all", MBPP, ALL, 974),
    "mbpp-sanitized": ("mbpp-sanitized", MBPP_SANITIZED, ALL, 427),
}


@dataclass(frozen=True, slots=True)
class MbppRecord:
    """A task of either file. The sanitized one calls the text ``prompt`` and lists imports."""

    task_id: int
    code: str
    test_list: tuple[str, ...]
    text: str = ""
    prompt: str = ""
    test_setup_code: str = ""
    test_imports: tuple[str, ...] = ()


def _problem(record: MbppRecord) -> Problem:
    assertions = [assertion.strip() for assertion in record.test_list]
    # After the program: some set-ups build objects of classes that the program defines.
    set_up = [record.test_setup_code, *record.test_imports]
    entry_point = function_under_test(assertions)
    words = (record.text or record.prompt).strip()
    return Problem(
        task_id=f"Mbpp/{record.task_id}",
        prompt=prompt_of(words, entry_point, assertions),
        reference=_unix(record.code),
        tests=code_tests(entry_point, _unix("\n".join([*set_up, *assertions]))),
    )


def prompt_of(words: str, entry_point: str, assertions: list[str]) -> str:
    """Return a docstring with the task, the function's name, and what it must satisfy."""
    examples = "\n".join(assertions)
    return f'"""\n{words}\nThe function is called {entry_point} and satisfies:\n\n{examples}\n"""\n'


def _show_all(records: Iterable[MbppRecord]) -> dict[str, str]:
    """Return every problem as the paper asks for it: after three solved tasks, by task id.

    The format is that of the data's README (google-research, Apache licence 2.0). An example is not
    shown before itself.
    """
    questions: dict[str, str] = {}
    solved: dict[str, str] = {}
    for record in records:
        words, tests = (record.text or record.prompt).strip(), "\n".join(record.test_list)
        task = (
            f"You are an expert Python programmer, and here is your task: {words} Your code should "
            f"pass these tests:\n\n{tests}\n[BEGIN]\n"
        )
        questions[task_id := f"Mbpp/{record.task_id}"] = task
        if record.task_id in EXAMPLES:
            solved[task_id] = f"{task}{_unix(record.code)}[DONE]\n"
    return {
        task_id: "".join(text for other, text in solved.items() if other != task_id) + task
        for task_id, task in questions.items()
    }


def _ask(questions: Mapping[str, str], problem: Problem, form: PromptForm) -> Prompt:
    """Ask as the paper does, with three solved tasks before the problem: also a chat model."""
    text = questions[problem.task_id]
    messages = () if form == "text" else (Message("user", text),)
    return Prompt(messages, "" if messages else text, stop=("[DONE]",))


def _unix(code: str) -> str:
    return code.replace("\r\n", "\n") + "\n"


def _build(task_ids: range, records: list[MbppRecord]) -> dict[str, Any]:
    return {
        "problems": tuple(_problem(record) for record in records if record.task_id in task_ids),
        "strategies": name_strategies(upstream=functools.partial(_ask, _show_all(records))),
    }


for _name, (_own_name, _data, _task_ids, _count) in SPLITS.items():
    benchmarks.declare(
        _data, MbppRecord, functools.partial(_build, _task_ids), _name, of=_own_name,
        problems=_count, time_rule=SHORT_TESTS,
    )  # fmt: skip
