"""LiveCodeBench (Jain et al. 2024): contest problems with dates, on standard input or as methods.

``livecodebench-v6`` contains the releases 1 to 6, as upstream's ``release_v6`` does. The latest is
also called ``livecodebench``, and ``livecodebench-v5_v6`` is only the last two of them.
``livecodebench-upstream`` extracts programs as upstream does.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from assay.benchmarks import Description, benchmarks
from assay.benchmarks.support.livecodebench_files import (
    FOLDER,
    RELEASES,
    LiveCodeBenchQuestion,
    read_releases,
    releases_of,
)
from assay.benchmarks.support.program_code import as_docstring, with_positional_arguments
from assay.types import Benchmark, Limits, Problem, Tests

if TYPE_CHECKING:
    from pathlib import Path

    from assay.progress import Announce

# Upstream allows 6 s of wall time per test. Here these are CPU seconds.
MAX_TOKENS = 2000  # upstream's
LIMITS = Limits(cpu_s=600.0, call_cpu_s=6.0, wall_s=900.0, memory_mb=4096, output_bytes=32 << 20)
STAR = (
    "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random",
    "statistics", "itertools", "functools", "operator", "io", "sys", "json",
)  # fmt: skip
IMPORTS = (*STAR, "typing")
SLICES = ("v4_v5", "v5_v6", "v6_v6")  # the newest problems, without reading the large old files
ENVIRONMENT = "livecodebench"  # with numpy, as upstream's; 9 of 880 recorded programs import it
# Upstream puts this before every program.
PRELUDE = (
    "".join(f"from {name} import *\n" for name in (*STAR, "builtins", "typing"))
    + "".join(f"import {name}\n" for name in STAR)
    + "sys.setrecursionlimit(50000)\n"
)
# A tuple counts as a list, but not inside of one.
MATCHER = """\
def matcher():
    return lambda arguments, expected, got: (
        (list(got) if isinstance(got, tuple) else got) == expected
    )
"""
SYSTEM = (
    "You are an expert Python programmer. You will be given a question (problem specification) "
    "and will generate a correct Python program that matches the specification and passes all "
    "tests."
)
WITH_STARTER = (
    "You will use the following starter code to write the solution to the problem and enclose "
    "your code within delimiters."
)
WITHOUT_STARTER = (
    "Read the inputs from stdin solve the problem and write the answer to stdout (do not directly "
    "test on the sample inputs). Enclose your code within delimiters as follows. Ensure that when "
    "the python program runs, it reads the inputs, runs the algorithm and writes output to STDOUT."
)
# Upstream's ERRATA.md: by id, or by title on LeetCode.
MARKED = {
    "several answers": (
        "abc311_c", "abc326_d", "abc327_b", "abc333_e", "abc343_e", "abc362_c", "abc343_a",
        "arc185_c", "find-words-containing-character", "find-the-peaks",
        "generate-binary-strings-without-adjacent-zeros",
    ),
    "interactive": ("abc337_e", "abc355_e"),
    "wrong tests": (
        "abc350_c", "arc189_a", "apply-operations-to-make-string-empty", "most-frequent-ids",
    ),
}  # fmt: skip
MARK_OF = {name: mark for mark, names in MARKED.items() for name in names}
PARTS = re.compile(r"-i{1,3}$")  # "…-i" and "…-ii" on LeetCode: one problem with other limits


def _load(
    name: str, version: str, only_rule: str, _announce: Announce, data_dir: Path | None
) -> Benchmark:
    questions, digest = read_releases(releases_of(version), data_dir)
    return Benchmark(
        name=name,
        version=version,
        data_sha256=digest,
        problems=tuple(build_problem(question, only_rule) for question in questions),
        limits=LIMITS,
        imports=IMPORTS,
        environment=ENVIRONMENT,
        max_tokens=MAX_TOKENS,
    )


def build_problem(question: LiveCodeBenchQuestion, only_rule: str = "") -> Problem:
    """Return the problem of a question. Upstream publishes no reference solutions."""
    record = question.record
    method = question.function
    mark = MARK_OF.get(record.question_id) or MARK_OF.get(record.question_title)
    labels = {"difficulty": record.difficulty, "platform": record.platform}
    on_leetcode = record.platform == "leetcode"
    return Problem(
        task_id=record.question_id,
        prompt=ask(record.question_content, record.starter_code),
        reference="",
        tests=Tests(
            entry_point=method,  # of a class, or a function: upstream accepts both
            code=MATCHER if method else "",
            preamble=PRELUDE,
            integrity="separated",
            texts=question.tests,
            adapter=with_positional_arguments(method) if method else "",
        ),
        cluster=PARTS.sub("", record.question_title) if on_leetcode else None,
        date=record.contest_date[:10],
        labels={**labels, "marked": mark} if mark else labels,
        system=SYSTEM,
        begun=as_docstring(record.question_content, record.starter_code),
        only_rule=only_rule,
    )


def ask(statement: str, starter_code: str) -> str:
    """Return upstream's question, for chat models."""
    begun = starter_code or "# YOUR CODE HERE"
    form = WITH_STARTER if starter_code else WITHOUT_STARTER
    return (
        f"### Question:\n{statement}\n\n### Format: {form}\n```python\n{begun}\n```\n\n"
        "### Answer: (use the provided format with backticks)\n\n"
    )


def _describe(version: str) -> Description:
    releases = releases_of(version)
    count = sum(RELEASES[name][1] for name in releases)
    files = ", ".join(RELEASES[name][0] for name in releases)
    place = f"{FOLDER}/ {files}"
    return Description(
        count, package_licence="CC", environment=ENVIRONMENT, place=place, group="contests"
    )


for _version in (*RELEASES, *SLICES):
    benchmarks.register(f"livecodebench-{_version}", _describe(_version))(
        functools.partial(_load, f"livecodebench-{_version}", _version, "")
    )
LATEST = "v6"
for _name, _rule in (("livecodebench", ""), ("livecodebench-upstream", "last-fences")):
    benchmarks.register(_name, _describe(LATEST))(functools.partial(_load, _name, LATEST, _rule))
