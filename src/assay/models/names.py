"""Build names that distinguish models."""

from __future__ import annotations

import re
from pathlib import Path

# Generic names: the name of the folder around them is added.
GENERIC = re.compile(
    r"(ggml[-_.])?(model|weights|checkpoint|consolidated|adapter|final|latest|last|best|merged|"
    r"output|completions|samples)s?([-_.]?\d+)?([-_.]?(f|bf|fp|i?q)\d\w*)?",
    re.IGNORECASE,
)
SIZE = re.compile(r"(?<![a-z0-9])\d+([._]\d+)?[KMBT](?![a-z])", re.IGNORECASE)
NUMBER_FORMAT = re.compile(
    r"i?q\d|(bf|fp|f|int)(4|8|16|32)(?!\d)|[48]-?bit|gptq|awq|nf4", re.IGNORECASE
)


def default_name(
    path: Path, *, adapter: Path | None = None, parameters: int = 0, number_format: str = ""
) -> str:
    """Return a name with folder, adapter, size and data type, as far as they are needed.

    Facts that are already in the file's own name are not repeated.
    """
    name = _own_name(path)
    if adapter is not None:
        name += f" + {_own_name(adapter)}"
    if parameters and not SIZE.search(name):
        name += f" {short_count(parameters)}"
    if number_format and not NUMBER_FORMAT.search(name):
        name += f" {number_format}"
    return name


def short_count(parameters: int) -> str:
    """Return a number of weights as model names have it: ``135M``, ``7.6B``."""
    for unit, size in (("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if parameters >= size:
            count = parameters / size
            return f"{count:.0f}{unit}" if count >= 10 else f"{count:.1f}{unit}"
    return str(parameters)


def _own_name(path: Path) -> str:
    path = path.absolute()
    name = path.name if path.is_dir() else Path(path.name.removesuffix(".gz")).stem
    if GENERIC.fullmatch(name) and path.parent.name:
        return f"{path.parent.name}/{name}"
    return name
