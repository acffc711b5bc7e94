"""Keep the compiled modules of engines where nothing else keeps them.

Many container images install packages uncompiled and set ``PYTHONDONTWRITEBYTECODE``. Python then
compiles torch and transformers whenever an engine starts: some thousand modules, which takes longer
than loading a small model.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from assay.datasets import cache_dir

PACKAGE = "torch"  # the largest; how it is installed shows how the others are
FOLDER = "PYTHONPYCACHEPREFIX"
NEVER_WRITE = "PYTHONDONTWRITEBYTECODE"


def bytecode_variables(package: str = PACKAGE) -> dict[str, str]:
    """Return variables that make Python keep compiled modules in the cache folder.

    There are none if the package is compiled, or if Python will keep what it compiles anyway.
    """
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None or os.environ.get(FOLDER):
        return {}
    compiled = Path(importlib.util.cache_from_source(found.origin))
    can_write = not os.environ.get(NEVER_WRITE) and os.access(Path(found.origin).parent, os.W_OK)
    if compiled.exists() or can_write:
        return {}
    return {FOLDER: str(cache_dir().absolute() / "bytecode"), NEVER_WRITE: ""}
