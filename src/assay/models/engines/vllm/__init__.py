"""Model folders and hub ids, run by vLLM."""

from assay.models.engines.vllm import engine

__all__ = ["engine"]
