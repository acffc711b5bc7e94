"""GGUF files, run by llama.cpp."""

from assay.models.engines.llamacpp import engine

__all__ = ["engine"]
