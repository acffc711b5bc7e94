"""``.apr`` files, version 2, run by the hf engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import ModelError
from assay.formats.apr.file import is_apr, read_apr
from assay.models import Backend, backends
from assay.models.engines.torch.engine import TorchModel, open_file

if TYPE_CHECKING:
    from assay.models import EngineOptions


def _open(reference: str, options: EngineOptions) -> TorchModel:
    path = Path(reference)
    if not path.is_file():
        raise ModelError(f"no model file at {reference}")
    read_apr(path)  # says what is wrong with the file before torch is asked for
    return open_file(path, options, "apr")


backends.register("apr")(Backend(_open, is_apr))
