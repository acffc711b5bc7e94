"""EvoEval (Xia et al. 2024): seven sets of problems that were evolved from HumanEval's.

``difficult``, ``creative``, ``subtle``, ``combine`` and ``tool-use`` are new problems. ``verbose``
and ``concise`` are HumanEval's in other words, with the inputs of HumanEval+.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from assay.benchmarks import benchmarks
from assay.benchmarks.support.declaring import name_strategies, per_record
from assay.benchmarks.support.evalplus import LIMITS, encode_inputs
from assay.benchmarks.support.evoeval_oracles import MATCHER, READ_ARGUMENTS, SPECIAL
from assay.benchmarks.support.program_code import preamble_of
from assay.data import codec
from assay.datasets.catalogue import DataFile, pin
from assay.types import Cases, Message, Problem, Prompt, PromptForm, Tests

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
        inputs = encode_inputs(record.base_input, record.plus_input)
    cases = Cases(inputs, {}, codec.digest(inputs))
    return Tests(record.entry_point, oracle, prompt_code, "separated", cases, prompt_code)


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


for _name, (_records, _size, _sha256, _records_sha256) in PINS.items():
    _file = f"EvoEval_{_name}.jsonl.gz"
    _data = pin(
        DataFile(
            f"evoeval-{_name.replace('_', '-')}", f"evoeval/{_file}", VERSION, "Apache-2.0",
            _records, _sha256, _records_sha256, tuple(f"{source}/{_file}" for source in SOURCES),
            _size,
        )
    )  # fmt: skip
    benchmarks.declare(
        _data, EvoEvalRecord, per_record(functools.partial(_problem, _name)), group="harder twins",
        suites=("full",) if _name in REWORDED else ("fresh", "full"), limits=LIMITS,
        strategies=name_strategies(upstream=_ask),
    )  # fmt: skip
