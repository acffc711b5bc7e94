"""The command line: parses, calls, prints."""

from assay.cli.main import cli, main

__all__ = ["cli", "main"]
