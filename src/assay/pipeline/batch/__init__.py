"""Generate completions for the prompts of a file, without a benchmark."""
