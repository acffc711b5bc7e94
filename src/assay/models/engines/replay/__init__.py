"""Replay recorded completions in place of a model."""

from assay.models.engines.replay import replay_model

__all__ = ["replay_model"]
