"""LeetCodeDataset (Xia et al. 2025), test split: 228 dated problems, about 100 cases each.

The entry point is a method of a class. Trees are built from lists in the program's process.
"""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.benchmarks import benchmarks
from assay.benchmarks.support.declaring import name_strategies, pin_commit
from assay.benchmarks.support.program_code import CLASS, as_docstring, with_named_arguments
from assay.data import codec, plain
from assay.errors import DataError
from assay.types import Cases, Limits, Message, Problem, Prompt, Tests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.types import PromptForm

DATA = pin_commit(
    "newfacade/LeetCodeDataset",
    "182cd19fd53161efd70a1ef074fe1056b659bfa3",
    "data/LeetCodeDataset-v0.3.1-test.jsonl.gz",
    "3ae536cb41342076691730b72424fdfb9264f233e05c81bf37b5f7e227ea1853",
    "344bffc0ec8ee90ed490854639c138c0fb32efee5d38fab4dba3eea1ac59de38",
    name="leetcodedataset", path="leetcodedataset/LeetCodeDataset-v0.3.1-test.jsonl.gz",
    version="v0.3.1", records=228, size=1_012_208,
)  # fmt: skip
ENVIRONMENT = "leetcode"
# Two references take more than 20 s on all their cases together, no case of any takes 2 s.
LIMITS = Limits(cpu_s=200.0, call_cpu_s=10.0, wall_s=400.0, memory_mb=4096)
GROUP = "cases"
MATCHER = "def matcher():\n    return lambda arguments, expected, got: got == expected\n"
BUILDERS = ("tree_node", "list_node")
CONSTANTS = {"inf": float("inf"), "nan": float("nan")}
PARTS = re.compile(r"-i{1,3}$")  # "…-i" and "…-ii": one problem with other limits


@dataclass(frozen=True, slots=True)
class LeetCodeRecord:
    task_id: str
    question_id: int
    difficulty: str
    problem_description: str
    starter_code: str
    estimated_date: str
    prompt: str  # imports, and classes of nodes: not what a model is asked
    completion: str
    entry_point: str
    test: str
    query: str


def _build(records: list[LeetCodeRecord]) -> dict[str, Any]:
    queries = {record.task_id: record.query for record in records}
    return {
        "problems": tuple(map(_problem, records)),
        "strategies": name_strategies(upstream=functools.partial(_ask, queries)),
    }


def _ask(queries: Mapping[str, str], problem: Problem, form: PromptForm) -> Prompt:
    """Send the data's own query, as upstream does: also to a base model."""
    query = queries[problem.task_id]
    return Prompt(text=query) if form == "text" else Prompt((Message("user", query),))


def _problem(record: LeetCodeRecord) -> Problem:
    method = record.entry_point.removeprefix(f"{CLASS}().")
    calls = [_AssertedCall(statement) for statement in _assertions(record)]
    names, builders = calls[0].names, calls[0].builders
    if any((call.names, call.builders) != (names, builders) for call in calls):
        raise DataError(f"{record.task_id}: its tests name different arguments.")
    inputs = {GROUP: [plain.encode(call.values) for call in calls]}
    expected = {GROUP: [plain.encode(call.expected) for call in calls]}
    return Problem(
        task_id=record.task_id,
        prompt=record.query.strip(),
        reference=record.completion,
        tests=Tests(
            entry_point=CLASS,
            code=MATCHER,
            preamble=record.prompt,
            integrity="separated",
            cases=Cases(inputs, expected, codec.digest([inputs, expected])),
            adapter=with_named_arguments(method, names, builders),
        ),
        cluster=PARTS.sub("", record.task_id),
        date=record.estimated_date,
        labels={"difficulty": record.difficulty.lower()},
        begun=_begin(record),
    )


def _begin(record: LeetCodeRecord) -> str:
    """Return a docstring with the problem and the starter code, which a base model continues."""
    docstring = as_docstring(record.problem_description, record.starter_code.rstrip())
    return f"from typing import *\n\n{docstring}\n"


def _assertions(record: LeetCodeRecord) -> list[ast.Assert]:
    """Return the assertions of ``def check(candidate)``. Nothing of it is executed."""
    match ast.parse(record.test).body:
        case [ast.FunctionDef("check", body=body)] if all(
            isinstance(statement, ast.Assert) for statement in body
        ):
            return [statement for statement in body if isinstance(statement, ast.Assert)]
    raise DataError(f"{record.task_id}: its tests are not assertions about candidate.")


class _AssertedCall:
    """The arguments and the result of ``assert candidate(name=value, ...) == result``."""

    def __init__(self, statement: ast.Assert) -> None:
        match statement.test:
            case ast.Compare(ast.Call(ast.Name("candidate"), [], keywords), [ast.Eq()], [expected]):
                self.expected = _value(expected)
            case _:
                raise DataError(f"{ast.unparse(statement)[:80]}: is not a call of candidate.")
        self.names = tuple(str(keyword.arg) for keyword in keywords)
        self.values: list[Any] = []
        self.builders: dict[str, str] = {}
        for keyword in keywords:
            match keyword.value:
                case ast.Call(ast.Name(builder), [content], []) if builder in BUILDERS:
                    self.builders[str(keyword.arg)] = builder
                    self.values.append(_value(content))
                case value:
                    self.values.append(_value(value))


def _value(node: ast.expr) -> Any:
    """Return the value of a literal, or of infinity by its name."""
    match node:
        case ast.Name(name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.UnaryOp(ast.USub(), ast.Name(name)) if name in CONSTANTS:
            return -CONSTANTS[name]
    return ast.literal_eval(node)


benchmarks.declare(
    DATA, LeetCodeRecord, _build, group="contests", suites=("fresh", "full"), limits=LIMITS,
    environment=ENVIRONMENT, imports=("sortedcontainers", "random", "datetime"),
)  # fmt: skip
