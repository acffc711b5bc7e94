"""What is measured and proved beside scores: throughput, contracts."""
