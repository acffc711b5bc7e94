"""Run Hugging Face models and .apr files with torch."""

from assay.models.engines.torch import apr_files, engine

__all__ = ["apr_files", "engine"]
