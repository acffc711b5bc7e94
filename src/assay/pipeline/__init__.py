"""Evaluate models, and score completions that were generated elsewhere."""

from assay.models import EngineOptions
from assay.pipeline.config import ALL, EvalConfig, JudgeConfig, Sampling, ScoreConfig
from assay.pipeline.evaluate import evaluate, evaluate_all
from assay.pipeline.judging import environment, select_problems
from assay.pipeline.problems import ProblemSelection
from assay.pipeline.run import sample_seed
from assay.pipeline.score import check_references, flaky, load_recorded_samples, score
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
    "check_references",
    "environment",
    "evaluate",
    "evaluate_all",
    "flaky",
    "load_recorded_samples",
    "sample_seed",
    "score",
    "select_problems",
]  # fmt: skip
