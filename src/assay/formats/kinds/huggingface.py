"""Register Hugging Face folders in transformers' layout."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from assay.formats.format import Format, formats
from assay.formats.huggingface.checkpoint import is_hf_folder, read, write
from assay.formats.huggingface.folder import model_folder, read_config
from assay.formats.huggingface.safetensors import read_index, read_safetensors
from assay.formats.stored import StoredModel, StoredSize, count_parameters
from assay.formats.tensors import PLAIN, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from assay.formats.format import Checkpoint, Written

PACKED = {"U8", "I32", "U32"}


def _sizes(path: Path) -> list[StoredSize]:
    files = sorted(model_folder(str(path)).glob("*.safetensors"))
    tensors = [tensor for file in files for tensor in read_safetensors(file)]
    return [StoredSize(t.nbytes, math.prod(t.shape)) for t in tensors]


def _describe(path: Path) -> StoredModel:
    folder = model_folder(str(path))
    config = read_config(folder)
    quantised = config.content.get("quantization_config")
    method = str(quantised.get("quant_method", "")) if isinstance(quantised, dict) else ""
    indexes = [read_index(file) for file in sorted(folder.glob("*.safetensors"))]
    entries = [entry for index in indexes for entry in index.entries]
    # Several weights in one integer: how many is not known here.
    packed = method and any(entry.dtype in PACKED for entry in entries)
    shapes = {} if packed else {entry.name: entry.shape for entry in entries}
    return StoredModel(
        parameters=count_parameters(shapes, is_tied=config.is_tied, stated=[folder.name]),
        number_format=method,
    )


def _write(
    path: Path, checkpoint: Checkpoint, tensors: Sequence[Tensor], written: Written, _: Path
) -> None:
    path.mkdir()
    write(path, checkpoint, tensors, written)


formats.register("hf")(
    Format(
        title="a Hugging Face folder",
        recognises=is_hf_folder,
        read=read,
        sizes=_sizes,
        describe=_describe,
        tensors=lambda checkpoint, _: checkpoint.hf_tensors(),
        holds=lambda tensor: tensor.encoding in PLAIN,
        write=_write,
    )
)
