"""Evaluate code-generating language models, all with the same protocol.

>>> import assay
>>> result = assay.evaluate("humaneval", model="model.gguf")  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from assay.api import Judge, RemoteJudge, check_benchmark, compare, evaluate, judge  # noqa: I001
    from assay.api import leaderboard, load_benchmark, load_run, open_model, run_suite, view
    from assay.api import write_report
    from assay.errors import AssayError, DataError, ModelError, RunError, SandboxError, UsageError
    from assay.models.options import EngineOptions
    from assay.progress import Reporter, Silent
    from assay.report.leaderboard.board import Baseline, Leaderboard, ModelFacts
    from assay.runs.compare import Comparison
    from assay.runs.result import Result, SampleResult
    from assay.types import Benchmark, Limits, Problem, Verdict

_HOME = {  # imported when they are first used, so that `import assay` is fast
    "assay.api": (
        "Judge", "RemoteJudge", "check_benchmark", "compare", "evaluate", "judge", "leaderboard",
        "load_benchmark", "load_run", "open_model", "run_suite", "view", "write_report",
    ),
    "assay.errors": (
        "AssayError", "DataError", "ModelError", "RunError", "SandboxError", "UsageError",
    ),
    "assay.models.options": ("EngineOptions",), "assay.progress": ("Reporter", "Silent"),
    "assay.report.leaderboard.board": ("Baseline", "Leaderboard", "ModelFacts"),
    "assay.runs.compare": ("Comparison",),
    "assay.runs.result": ("Result", "SampleResult"),
    "assay.types": ("Benchmark", "Limits", "Problem", "Verdict"),
}  # fmt: skip
_MODULES = {name: module for module, names in _HOME.items() for name in names}
__all__ = [
    "AssayError", "Baseline", "Benchmark", "Comparison", "DataError", "EngineOptions", "Judge",
    "Leaderboard", "Limits", "ModelError", "ModelFacts", "Problem", "RemoteJudge", "Reporter",
    "Result", "RunError", "SampleResult", "SandboxError", "Silent", "UsageError", "Verdict",
    "check_benchmark", "compare", "evaluate", "judge", "leaderboard", "load_benchmark", "load_run",
    "open_model", "run_suite", "view", "write_report",
]  # fmt: skip

if not TYPE_CHECKING:  # for type checkers, an unknown name is an error

    def __getattr__(name: str) -> Any:
        if name == "reward":  # a package of its own
            return importlib.import_module("assay.reward")
        if name not in _MODULES:
            raise AttributeError(f"module 'assay' has no attribute {name!r}")
        return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
