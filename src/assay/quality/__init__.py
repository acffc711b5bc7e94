"""Whether a model is sound: perplexity, throughput, parity with a reference, and the gate."""
