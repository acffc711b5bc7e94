"""Evaluate many models on many benchmarks, each model loaded once."""
