"""GGUF files, run by llama.cpp."""

from assay.models.engines.llamacpp import gguf_model

__all__ = ["gguf_model"]
