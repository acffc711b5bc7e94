"""Commands that look at a model's file take a path, or the default model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.datasets import packaged_file
from assay.errors import UsageError
from assay.models import DEFAULT, DEFAULT_WEIGHTS

if TYPE_CHECKING:
    from collections.abc import Callable


def model_path(model: str, note: Callable[[str], None]) -> Path:
    if model == DEFAULT:
        return packaged_file(DEFAULT_WEIGHTS, note)
    path = Path(model)
    if not path.exists():
        raise UsageError(f"no model at {model}: give a .gguf or .apr file or a folder")
    return path
