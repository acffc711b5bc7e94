"""Run Hugging Face models with torch."""

from assay.models.engines.torch import torch_model

__all__ = ["torch_model"]
