"""Check a benchmark itself: its references, its tests and its prompts."""

from assay.pipeline.benchmark_check.check import check_benchmark
from assay.pipeline.benchmark_check.findings import KINDS, BenchmarkCheck, BenchmarkFinding

__all__ = ["KINDS", "BenchmarkCheck", "BenchmarkFinding", "check_benchmark"]
