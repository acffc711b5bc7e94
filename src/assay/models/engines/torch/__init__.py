"""Hugging Face models and .apr files, run by torch."""

from assay.models.engines.torch import apr_files, engine

__all__ = ["apr_files", "engine"]
