"""Judge in several processes, each with workers of its own, so that no interpreter is the limit."""
