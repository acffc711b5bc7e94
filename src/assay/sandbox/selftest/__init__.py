"""Attack a sandbox, and show what this machine offers it."""
