"""Name the distribution of assay. On the public index, ``assay`` is another project."""

from __future__ import annotations

DISTRIBUTION = "assay-eval"


def install_hint(extra: str) -> str:
    """Return the command that installs what an optional part needs."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
