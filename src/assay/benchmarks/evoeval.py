"""EvoEval (Xia et al. 2024): seven sets of problems that were evolved from HumanEval's.

``difficult``, ``creative``, ``subtle``, ``combine`` and ``tool-use`` are new problems. ``verbose``
and ``concise`` are HumanEval's in other words, with the inputs of HumanEval+.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.benchmarks import Description, benchmarks
from assay.benchmarks.support.evalplus import LIMITS
from assay.benchmarks.support.evoeval_oracles import MATCHER, READ_ARGUMENTS, SPECIAL
from assay.benchmarks.support.prompt_code import preamble_of
from assay.data import codec, plain
from assay.datasets.catalogue import DataFile, pin, read_records
from assay.types import Benchmark, Cases, Message, Problem, Prompt, PromptForm, Strategy, Tests

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from assay.progress import Announce

VERSION, PUBLISHED = "v0.1.0", "2024-03-28"
SOURCES = (
    f"https://github.com/evo-eval/evoeval_release/releases/download/{VERSION}",
    "https://raw.githubusercontent.com/evo-eval/evoeval_release/"
    "e676c55b2464e9bd8ea7d5ef703dacd230d95c5f",
)
# Of every set: records, bytes, digest of the file, digest of the records.
PINS = {
    "difficult": (
        100, 75_813, "8dc031773be0d2bc86172ec4242fd06ce4256c34a710f1affee24655946a4fd6",
        "ae44bc10dfbeb441bf7e8a6ed4bc9819e89b60e0b97021b006f4fec44ffe10b5",
    ),
    "creative": (
        100, 87_200, "4ab26cb7eb69aab36b68c60c44e9da4330b689b6ac23997062bb3a85977a427e",
        "9f3f3bff6db0f18ead24cea07d2f62a09f556c32566283ac7a2507090beceb7e",
    ),
    "subtle": (
        100, 595_320, "0b38871e0eadc7b8f5ae8038feac5496655412d4e68ca580cad8bd2c81b036b1",
        "d38a8e2f2515b122d5bb9c54a49ef2d78e06a1dcabb9ce726f99c219483e11ed",
    ),
    "combine": (
        100, 81_895, "44dab80c829bf0953e3fcaedbd50420a305d8d42e2cdaa03a7d6af96ce0bbe2f",
        "96ae51c9b1884209ee5ad1768967e72581821fdb2e0cc74583cd0d8cf1bd486b",
    ),
    "tool_use": (
        100, 98_744, "901166f15db3deac52e0a1f82a831390ea41127816970470c1d3fd4f9065dc79",
        "1a711fe7e652bf64777e95f1ef0d3300e13be3a2b1b1370992a6c831677ccf33",
    ),
    "verbose": (
        164, 1_163_964, "97b6a7cb69b9f5a9c83301a98e54c681a5ff3c3beae92115d59c50fcaf8955e2",
        "951f902e5ad9f03529ce72e81171b14bef0df294ecc6e80040c32282c4e1d370",
    ),
    "concise": (
        164, 988_268, "d84771c5857e080ae310724e1e75784a46a8a9beea80d9b6427426634a885ddc",
        "5fbd55f17783d0e25b1a010c714232f2559559034e5bd8f06a0b4500c3d855ff",
    ),
}  # fmt: skip

REWORDED = ("verbose", "concise")  # the problems are HumanEval's


@dataclass(frozen=True, slots=True)
class EvoEvalRecord:
    """A task of any set. New problems have inputs as text, reworded ones have lists."""

    task_id: str
    prompt: str
    entry_point: str
    canonical_solution: str
    inputs: tuple[str, ...] = ()
    base_input: object = ()
    plus_input: object = ()
    parent: str = ""
    p1: str = ""  # of two problems that are combined, the first


def _pin(name: str) -> DataFile:
    records, size, sha256, records_sha256 = PINS[name]
    return pin(
        DataFile(
            name=f"evoeval-{name.replace('_', '-')}",
            path=f"evoeval/EvoEval_{name}.jsonl.gz",
            version=VERSION,
            licence="Apache-2.0",
            records=records,
            sha256=sha256,
            records_sha256=records_sha256,
            urls=tuple(f"{source}/EvoEval_{name}.jsonl.gz" for source in SOURCES),
            size=size,
        )
    )


def _load(name: str, data: DataFile, announce: Announce, data_dir: Path | None) -> Benchmark:
    found = read_records(EvoEvalRecord, data, announce, data_dir)
    return Benchmark(
        name=data.name,
        version=data.version,
        data_sha256=data.sha256,
        problems=tuple(_problem(name, record) for record in found),
        limits=LIMITS,
        strategies={"upstream": Strategy("upstream", 1, _ask)},
    )


def _problem(name: str, record: EvoEvalRecord) -> Problem:
    prompt_code = preamble_of(record.prompt, record.entry_point)
    oracle = SPECIAL.get((name, record.task_id), MATCHER)
    return Problem(
        task_id=record.task_id,
        prompt=record.prompt,
        reference=f"{record.prompt}\n{record.canonical_solution}",
        tests=_tests(record, oracle, prompt_code),
        cluster=record.parent or record.p1 or record.task_id,
        date=PUBLISHED,
    )


def _tests(record: EvoEvalRecord, oracle: str, prompt_code: str) -> Tests:
    """Return the tests. Expected outputs are the reference's."""
    if record.inputs:
        inputs: dict[str, list[Any]] = {"base": list(record.inputs)}
        oracle += READ_ARGUMENTS
    else:
        groups = {"base": record.base_input, "plus": record.plus_input}
        inputs = {group: list(map(plain.encode, _list(found))) for group, found in groups.items()}
    cases = Cases(inputs, {}, codec.digest(inputs))
    return Tests(record.entry_point, oracle, prompt_code, "separated", cases, prompt_code)


def _list(found: object) -> list[Any]:
    return found if isinstance(found, list) else []


def _ask(problem: Problem, form: PromptForm) -> Prompt:
    """Ask as upstream asks most chat models; a base model continues the prompt."""
    if form == "text":
        stop = ("\nclass", "\ndef", "\n#", "\n@", "\nprint", "\nif", "\n```")
        return Prompt(text=problem.prompt.strip(), stop=stop)
    question = (
        "Please implement the following Python function in a markdown style code block:\n\n"
        f"```python\n{problem.prompt.strip()}\n```\n"
    )
    return Prompt(messages=(Message("user", question),))


for _name in PINS:
    _data = _pin(_name)
    _suites = ("full",) if _name in REWORDED else ("fresh", "full")
    _description = Description(
        _data.records, _data, group="harder twins", suites=_suites, strategies=("upstream",)
    )
    benchmarks.register(_data.name, _description)(functools.partial(_load, _name, _data))
