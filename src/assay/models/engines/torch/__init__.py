"""Run Hugging Face models and .apr files with torch."""

from assay.models.engines.torch import apr_files, torch_model

__all__ = ["apr_files", "torch_model"]
