"""Register Hugging Face folders in transformers' layout."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from assay.formats.format import Format, StoredSize, formats
from assay.formats.huggingface.checkpoint import is_hf_folder, read, write
from assay.formats.huggingface.folder import model_folder
from assay.formats.huggingface.safetensors import read_safetensors
from assay.formats.tensors import PLAIN, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from assay.formats.checkpoint import Checkpoint
    from assay.formats.format import Written


def _sizes(path: Path) -> list[StoredSize]:
    files = sorted(model_folder(str(path)).glob("*.safetensors"))
    found = [tensor for file in files for tensor in read_safetensors(file)]
    return [StoredSize(t.nbytes, math.prod(t.shape)) for t in found]


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
        tensors=lambda checkpoint, _: checkpoint.hf_tensors(),
        holds=lambda tensor: tensor.encoding in PLAIN,
        write=_write,
    )
)
