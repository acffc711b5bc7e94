"""Evaluate models, and score completions that were generated elsewhere."""

from assay.models import EngineOptions
from assay.pipeline.config import ALL, EvalConfig, JudgeConfig, Sampling, ScoreConfig, Until
from assay.pipeline.evaluate import evaluate, evaluate_all
from assay.pipeline.plan import sample_seed
from assay.pipeline.problems import ProblemSelection
from assay.pipeline.score import score
from assay.pipeline.sequential import evaluate_until

__all__ = [
    "ALL", "EngineOptions", "EvalConfig", "JudgeConfig", "ProblemSelection", "Sampling",
    "ScoreConfig", "Until", "evaluate", "evaluate_all", "evaluate_until", "sample_seed", "score",
]  # fmt: skip
