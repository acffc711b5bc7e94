"""Check a benchmark itself: its references, its tests and its prompts."""

from assay.pipeline.benchmark_check.check import check_benchmark
from assay.pipeline.benchmark_check.findings import KINDS, BenchmarkCheck, Finding

__all__ = ["KINDS", "BenchmarkCheck", "Finding", "check_benchmark"]
