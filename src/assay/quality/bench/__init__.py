"""Measure how fast a model is as the harness runs it."""

from assay.quality.bench.measure import BenchConfig, bench, bench_model
from assay.quality.bench.throughput import BenchResult, BenchSettings
from assay.runs.stores.bench_files import Spread

__all__ = ["BenchConfig", "BenchResult", "BenchSettings", "Spread", "bench", "bench_model"]
