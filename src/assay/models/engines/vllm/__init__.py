"""Run model folders and hub ids with vLLM."""

from assay.models.engines.vllm import vllm_model

__all__ = ["vllm_model"]
