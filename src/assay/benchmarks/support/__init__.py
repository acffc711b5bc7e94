"""Share helpers that several benchmarks need to build their problems."""
