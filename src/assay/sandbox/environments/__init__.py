"""Environments of Python packages that programs may import."""
