"""Run ``.apr`` files, version 2, with the hf engine. Beside it, so that either can be deleted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import ModelError
from assay.formats.apr.apr_file import is_apr, read_apr
from assay.models import Backend, backends
from assay.models.options import LOCAL_OPTIONS

if TYPE_CHECKING:
    from assay.models import EngineOptions
    from assay.models.engines.torch.torch_model import TorchModel


def _open(reference: str, options: EngineOptions) -> TorchModel:
    from assay.models.engines.torch.torch_model import open_file

    path = Path(reference)
    if not path.is_file():
        raise ModelError(f"{reference}: is not a file. Give the path of a model file.")
    read_apr(path)  # reports a damaged file before torch is needed
    return open_file(path, options, "apr")


backends.register("apr")(Backend(_open, is_apr, LOCAL_OPTIONS | {"dtype"}, "processes"))
