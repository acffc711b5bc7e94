"""Hold what runs in the sandbox's own interpreter. It imports the standard library only."""
