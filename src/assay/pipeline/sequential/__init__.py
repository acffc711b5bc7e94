"""Evaluate in rounds of samples until a comparison decides."""

from assay.pipeline.sequential.rounds import evaluate_until

__all__ = ["evaluate_until"]
