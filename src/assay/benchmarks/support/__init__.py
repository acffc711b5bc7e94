"""What several benchmarks need to build their problems."""
