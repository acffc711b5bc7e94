"""BigCodeBench (Zhuo et al. 2024): tasks that use 71 libraries, tested by unittest classes."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from assay.benchmarks import benchmarks
from assay.benchmarks.support.declaring import per_record
from assay.benchmarks.support.evalplus import FUNCTION_STOP, STOP, build_upstream
from assay.benchmarks.support.program_code import RUNNER
from assay.datasets.pinned import BIGCODEBENCH, BIGCODEBENCH_HARD
from assay.errors import UsageError
from assay.types import Limits, Problem, Prompt, Tests

ENVIRONMENT = "bigcodebench"
MAX_TOKENS = 1280  # upstream's. Answers repeat the docstring: 41 % of a 1.5B model's have over 512
# Upstream's 240 s, here as CPU time. Some references sleep or wait for minutes.
LIMITS = Limits(cpu_s=240, wall_s=300, memory_mb=4096, processes=256, files_mb=256)

# Their tests compare wall times, such as 5 s of sleep with a tolerance of 0.5 s.
TIMED = frozenset(f"BigCodeBench/{number}" for number in (819, 821, 823, 1045))

# Libraries worth preloading: their import in all tasks that use them takes longer than their pages
# add to every fork (about 0.07 ms per megabyte). TensorFlow, sympy, statsmodels, cv2 and the web
# frameworks are not worth it.
IMPORTS = (
    "unittest.mock", "doctest", "csv", "glob", "sqlite3", "statistics", "subprocess", "tempfile",
    "urllib.request", "zipfile",
    "numpy", "numpy.testing", "pandas", "pandas.plotting._matplotlib",
    "matplotlib.pyplot", "matplotlib.backends.backend_agg", "seaborn",
    "scipy.stats", "scipy.optimize", "scipy.fft",
    "sklearn.cluster", "sklearn.datasets", "sklearn.decomposition", "sklearn.ensemble",
    "sklearn.feature_extraction.text", "sklearn.linear_model", "sklearn.metrics",
    "sklearn.model_selection", "sklearn.preprocessing",
    "requests", "faker", "nltk.corpus", "nltk.tokenize", "pytz", "dateutil.parser", "bs4",
    "PIL.Image",
)  # fmt: skip

# Upstream's module has these names without an import. The seeds are assay's: the same program
# gets the same verdict again where tests set no seed.
MODULE = """\
import os, sys
from os import environ
__file__ = "program.py"
__import__("random").seed(0)
__import__("numpy").random.seed(0)
"""


@dataclass(frozen=True, slots=True)
class BigCodeBenchRecord:
    task_id: str
    complete_prompt: str
    instruct_prompt: str
    code_prompt: str
    canonical_solution: str
    entry_point: str
    test: str


def _continue(problem: Problem) -> Prompt:
    return Prompt(text=problem.prompt, stop=STOP + FUNCTION_STOP)


def _refuse(problem: Problem) -> Prompt:
    raise UsageError(
        f"{problem.task_id}: upstream does not ask base models by instructions. Evaluate "
        "bigcodebench-complete, or use another --prompt-strategy."
    )


STRATEGIES = {
    "complete": build_upstream(_continue),
    "instruct": build_upstream(_refuse, lambda problem: problem.prompt.strip()),
}


def _problem(kind: str, record: BigCodeBenchRecord) -> Problem:
    # "Calibrated": imports and constants that a program may have left to the prompt.
    prompt_code = f"{record.code_prompt}\n    pass\n"
    return Problem(
        task_id=record.task_id,
        prompt=record.complete_prompt if kind == "complete" else record.instruct_prompt,
        reference=f"{record.complete_prompt}\n{record.canonical_solution}",
        tests=Tests(
            entry_point=record.entry_point,
            code=f"{record.test}\n{RUNNER}",
            preamble=f"{MODULE}{prompt_code}",
            prompt_code=prompt_code,
        ),
    )


for _data, _suites in ((BIGCODEBENCH, ()), (BIGCODEBENCH_HARD, ("full",))):
    for _suffix, _kind in (("", "complete"), ("-complete", "complete"), ("-instruct", "instruct")):
        benchmarks.declare(
            _data, BigCodeBenchRecord, per_record(functools.partial(_problem, _kind)),
            f"{_data.name}{_suffix}", of=f"{_data.name}-{_kind}", group="libraries",
            suites=() if _suffix else _suites, environment=ENVIRONMENT, limits=LIMITS,
            imports=IMPORTS, max_tokens=MAX_TOKENS, timed=TIMED, strategies=STRATEGIES[_kind],
        )  # fmt: skip
