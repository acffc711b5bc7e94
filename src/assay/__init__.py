"""Evaluate code-generating language models, every recipe identically."""

__version__ = "0.1.0"
