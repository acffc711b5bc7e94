"""APR and GGUF files, run by the ``apr`` command."""

from assay.models.engines.apr_cli import apr_model

__all__ = ["apr_model"]
