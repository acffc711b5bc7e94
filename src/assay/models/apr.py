"""``.apr`` files, version 2, run by the hf engine."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import ModelError
from assay.models import Backend, backends
from assay.models._apr_file import is_apr, read_apr

if TYPE_CHECKING:
    from assay.models import EngineOptions, Model


def _open(reference: str, options: EngineOptions) -> Model:
    path = Path(reference)
    if not path.is_file():
        raise ModelError(f"no model file at {reference}")
    read_apr(path)  # says what is wrong with the file before anything heavy is imported
    model: Model = importlib.import_module("assay.models.hf").HfModel(
        reference, options, engine="apr"
    )
    return model


backends.register("apr")(Backend(_open, is_apr))
