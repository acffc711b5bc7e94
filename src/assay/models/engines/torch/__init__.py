"""Run Hugging Face models with torch."""

from assay.models.engines.torch import engine

__all__ = ["engine"]
