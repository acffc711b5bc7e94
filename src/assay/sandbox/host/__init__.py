"""The harness side of the fork servers: pool, workers, verdicts."""
