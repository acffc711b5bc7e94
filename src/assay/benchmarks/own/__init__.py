"""Read benchmarks that users write themselves, as a file."""
