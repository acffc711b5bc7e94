"""Use servers with OpenAI's interface."""

from assay.models.engines.openai import engine

__all__ = ["engine"]
