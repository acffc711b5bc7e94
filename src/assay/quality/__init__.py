"""Decide whether a model is sound: perplexity, throughput, parity with a reference, the gate."""
