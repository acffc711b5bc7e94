"""Show models by benchmarks."""
