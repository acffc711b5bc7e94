"""Measure how fast a model is as the harness runs it."""

from assay.quality.bench.measure import BenchConfig, bench, bench_model

__all__ = ["BenchConfig", "bench", "bench_model"]
