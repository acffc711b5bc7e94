"""CanItEdit (Cassano et al. 2024): 105 Python files to edit, each with two instructions.

``canitedit-descriptive`` says in detail what to change, ``canitedit-lazy`` in a few words.
``canitedit`` has both, 210 problems of 105 clusters. The answer is the whole file. Scores are
broken down by the kind of change. Beside them stands ExcessCode, for programs that pass.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from assay.benchmarks import benchmarks
from assay.benchmarks.support.declaring import name_strategies
from assay.benchmarks.support.excess_code import excess_code
from assay.datasets.catalogue import DataFile, pin, read_records
from assay.types import Limits, Message, Problem, Prompt, PromptForm, Tests

if TYPE_CHECKING:
    from pathlib import Path

Kind = Literal["descriptive", "lazy"]
ENVIRONMENT = "canitedit"
MAX_TOKENS = 3072  # upstream's: an answer is the whole file
PUBLISHED = "2024-03-19"  # with 105 problems; 54 of them in December 2023
# Upstream's 15 s, here as CPU time.
LIMITS = Limits(cpu_s=15.0, wall_s=60.0, memory_mb=4096, processes=256)
DATA = pin(
    DataFile(
        name="canitedit",
        path="canitedit/canitedit.jsonl.gz",
        version="2024-03-19",
        licence="BSD-3-Clause, not for training",
        records=105,
        sha256="e4f0bd7ef933fd4838d444c3ef74bc63cdc75439f6bb0b870ba54a01779c7364",
        records_sha256="df50eb21f94b80dfb3f03ce604806ee69416505757d7f7a9a71c7eb69304e4e3",
        origin="nuprl/CanItEdit of the Hugging Face hub, as JSON lines,",
    )
)
# The file runs as a script, as upstream runs it. The seeds are assay's: the same program gets the
# same verdict again where tests set no seed.
MODULE = """\
__name__ = "__main__"
__file__ = "<program>"
__import__("sys").modules["__main__"] = __import__("sys").modules["candidate"]
__import__("random").seed(0)
__import__("numpy").random.seed(0)
"""
# Two problems have tests that read the file. The judge calls these tests, and has its text.
SHOW_FILE = """\
def _show_file():
    import linecache, sys
    text = sys._getframe(2).f_locals["program"] + "\\n"
    linecache.cache[__file__] = len(text), None, text.splitlines(keepends=True), __file__
_show_file()
"""
READS_FILE = "inspect.getsource"
# A whole file is judged as it is: nothing is cut off, added or taken from elsewhere.
WITHOUT_RULES = ("body", "method", "joined", "repeated", "demo", "hints")


@dataclass(frozen=True, slots=True)
class Taxonomy:
    change_kind: str
    libraries: tuple[str, ...]
    topic: str


@dataclass(frozen=True, slots=True)
class CanItEditRecord:
    id: int
    full_name: str
    before: str
    after: str
    tests: str
    instruction_descriptive: str
    instruction_lazy: str
    taxonomy: Taxonomy

    def instruction(self, kind: Kind) -> str:
        return self.instruction_lazy if kind == "lazy" else self.instruction_descriptive


@dataclass(frozen=True, slots=True)
class Edit:
    """A task for a model: a file, and the instruction to change it."""

    before: str
    instruction: str


def _problem(record: CanItEditRecord, kind: Kind, *, one_of_two: bool) -> Problem:
    labels = {"change": record.taxonomy.change_kind}
    task_id = f"CanItEdit/{record.id}"
    code = f"{SHOW_FILE}{record.tests}" if READS_FILE in record.tests else record.tests
    return Problem(
        task_id=f"{task_id}/{kind}",
        prompt=_ask_base(Edit(record.before, record.instruction(kind))),
        reference=record.after,
        tests=Tests(entry_point=_entry_point(record), code=f"{code}\n", preamble=MODULE),
        without_rules=WITHOUT_RULES,
        cluster=task_id,
        date=PUBLISHED,
        labels=labels | {"instruction": kind} if one_of_two else labels,
    )


def _entry_point(record: CanItEditRecord) -> str:
    """Return the first function or class of the edited file that its tests use."""
    used = {node.id for node in ast.walk(ast.parse(record.tests)) if isinstance(node, ast.Name)}
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = (n.name for n in ast.parse(record.after).body if isinstance(n, definitions))
    return next(name for name in defined if name in used)


def _build(kinds: tuple[Kind, ...], records: list[CanItEditRecord]) -> dict[str, Any]:
    both = [(record, kind) for record in records for kind in kinds]
    edits = {
        f"CanItEdit/{record.id}/{kind}": Edit(record.before, record.instruction(kind))
        for record, kind in both
    }
    several = len(kinds) > 1
    return {
        "problems": tuple(_problem(record, kind, one_of_two=several) for record, kind in both),
        "strategies": name_strategies(
            standard=functools.partial(_ask, edits, ""),
            scot=functools.partial(_ask, edits, f"{PLAN_FIRST} "),
            upstream=functools.partial(_ask_upstream, edits),
        ),
        "measures": (excess_code({task_id: edit.before for task_id, edit in edits.items()}),),
    }


STOP = (
    "## Code After:", "## Instruction:", "## Code Before:", "## Test Case:", "## Explanation:",
    "\n# Code Before", "\n# Code After", "\n# Instruction",
)  # fmt: skip
SYSTEM = (
    "You are PythonEditGPT. You will be provided the original code snippet and an instruction that "
    "specifies the changes you need to make. You will produce the changed code, based on the "
    "original code and the instruction given. Only produce the code, do not include any "
    "additional prose."
)
PLAN_FIRST = "First say which parts of the file have to change, and how."
ANSWER = "Answer with the whole changed file in one Python code block."


def _ask_base(edit: Edit) -> str:
    """Return upstream's prompt for base models."""
    return f"## Code Before:\n{edit.before}\n## Instruction:\n{edit.instruction}\n## Code After:\n"


def _ask_upstream(edits: dict[str, Edit], problem: Problem, form: PromptForm) -> Prompt:
    edit = edits[problem.task_id]
    if form == "text":
        return Prompt(text=_ask_base(edit), stop=STOP)
    question = (
        f"## Code Before\n```py\n{edit.before}\n```\n\n"
        f"## Instruction\n{edit.instruction}\n\n## Code After"
    )
    return Prompt(messages=(Message("system", SYSTEM), Message("user", question)))


def _ask(edits: dict[str, Edit], first: str, problem: Problem, form: PromptForm) -> Prompt:
    if form == "text":
        return _ask_upstream(edits, problem, form)
    edit = edits[problem.task_id]
    question = (
        f"Edit this Python file.\n\n```python\n{edit.before.strip()}\n```\n\n"
        f"{edit.instruction.strip()}\n\n{first}{ANSWER}"
    )
    return Prompt(messages=(Message("user", question),))


def read_unedited_programs(data_dir: Path | None = None) -> dict[str, str]:
    """Return the programs before the change, by original problem."""
    records = read_records(CanItEditRecord, DATA, data_dir=data_dir)
    return {f"CanItEdit/{record.id}": record.before for record in records}


# In no suite: its data cannot be downloaded.
_kinds: tuple[Kind, ...] = get_args(Kind)
for _name, _asked in {"canitedit": _kinds, **{f"canitedit-{k}": (k,) for k in _kinds}}.items():
    benchmarks.declare(
        DATA, CanItEditRecord, functools.partial(_build, _asked), _name, group="editing",
        problems=len(_asked) * DATA.records, environment=ENVIRONMENT, limits=LIMITS,
        imports=("numpy",), max_tokens=MAX_TOKENS, only_own_strategies=True,
    )  # fmt: skip
