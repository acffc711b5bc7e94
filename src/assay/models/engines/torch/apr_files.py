"""Run ``.apr`` files, version 2, with the hf engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import ModelError
from assay.formats.apr.apr_file import is_apr, read_apr
from assay.models import Backend, backends
from assay.models.engines.torch.torch_model import TorchModel, open_file
from assay.models.options import LOCAL_OPTIONS

if TYPE_CHECKING:
    from assay.models import EngineOptions


def _open(reference: str, options: EngineOptions) -> TorchModel:
    path = Path(reference)
    if not path.is_file():
        raise ModelError(f"{reference}: is not a file. Give the path of a model file.")
    read_apr(path)  # reports a damaged file before torch is needed
    return open_file(path, options, "apr")


backends.register("apr")(Backend(_open, is_apr, LOCAL_OPTIONS | {"dtype"}, "processes"))
