"""Use servers with OpenAI's interface."""

from assay.models.engines.openai import openai_model

__all__ = ["openai_model"]
