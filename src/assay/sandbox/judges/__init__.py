"""Judge in several processes, each with its own workers, so that no interpreter is the limit."""
