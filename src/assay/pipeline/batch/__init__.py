"""Completions for the prompts of a file: no benchmark, no judging."""
