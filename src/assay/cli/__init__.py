"""Command line: parse options, call the library, print results."""

from assay.cli.main import cli, main

__all__ = ["cli", "main"]
