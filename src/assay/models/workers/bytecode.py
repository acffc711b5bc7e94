"""Keep the compiled modules of engines where nothing else keeps them.

Many container images install packages uncompiled and set ``PYTHONDONTWRITEBYTECODE``. Python then
compiles torch and transformers whenever an engine starts: some thousand modules, which takes longer
than loading a small model.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from pathlib import Path

from assay.data import codec
from assay.datasets import cache_dir, check_private

PACKAGE = "torch"  # the largest; how it is installed shows how the others are
FOLDER = "PYTHONPYCACHEPREFIX"
NEVER_WRITE = "PYTHONDONTWRITEBYTECODE"


def bytecode_variables(package: str = PACKAGE) -> dict[str, str]:
    """Return variables that make Python keep compiled modules in the cache folder.

    There are none if the package is compiled, or if Python will keep what it compiles anyway.
    """
    code = _find_code(package)
    if code is None or os.environ.get(FOLDER):
        return {}
    compiled = Path(importlib.util.cache_from_source(str(code)))
    can_write = not os.environ.get(NEVER_WRITE) and os.access(code.parent, os.W_OK)
    if compiled.exists() or can_write:
        return {}
    folder = cache_dir().absolute() / "bytecode"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        check_private(folder)  # whoever can write to it can make an engine run anything
    except OSError:
        return {}
    return {FOLDER: str(folder / _digest_packages(code.parent.parent)), NEVER_WRITE: ""}


def _find_code(package: str) -> Path | None:
    """Return the package's first module, or None if there is no such file."""
    with contextlib.suppress(ValueError):  # a stand-in that a program put into sys.modules
        found = importlib.util.find_spec(package)
        if found is not None and found.origin is not None:
            return Path(found.origin)
    return None


def _digest_packages(folder: Path) -> str:
    """Return a digest of the packages in a folder, with their versions.

    Python compares only time and size, which images that are built reproducibly do not change.
    """
    names = sorted(path.name for path in folder.glob("*.dist-info"))
    return codec.digest([sys.version, str(folder), names])[:16]
