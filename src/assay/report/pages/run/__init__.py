"""Show a run and its samples."""
