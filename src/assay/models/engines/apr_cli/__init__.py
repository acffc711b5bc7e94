"""APR and GGUF files, run by the ``apr`` command."""

from assay.models.engines.apr_cli import engine

__all__ = ["engine"]
