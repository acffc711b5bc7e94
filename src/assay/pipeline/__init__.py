"""Evaluate models, and score completions that were generated elsewhere."""

from assay.models import EngineOptions
from assay.pipeline.config import ALL, EvalConfig, JudgeConfig, Sampling, ScoreConfig, Until
from assay.pipeline.evaluate import evaluate, evaluate_all
from assay.pipeline.judging import environment
from assay.pipeline.plan import sample_seed
from assay.pipeline.problems import ProblemSelection, select_problems
from assay.pipeline.score import check_references, flaky, score
from assay.pipeline.sequential import evaluate_until
from assay.progress import Reporter

__all__ = [
    "ALL",
    "EngineOptions",
    "EvalConfig",
    "JudgeConfig",
    "ProblemSelection",
    "Reporter",
    "Sampling",
    "ScoreConfig",
    "Until",
    "check_references",
    "environment",
    "evaluate",
    "evaluate_all",
    "evaluate_until",
    "flaky",
    "sample_seed",
    "score",
    "select_problems",
]  # fmt: skip
