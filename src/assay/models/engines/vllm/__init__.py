"""Run model folders and hub ids with vLLM."""

from assay.models.engines.vllm import engine

__all__ = ["engine"]
