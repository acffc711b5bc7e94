"""Suites of several models and benchmarks."""
