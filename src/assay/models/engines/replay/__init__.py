"""Replay recorded completions in place of a model."""

from assay.models.engines.replay import engine

__all__ = ["engine"]
