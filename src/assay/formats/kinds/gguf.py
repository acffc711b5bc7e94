"""Register GGUF, llama.cpp's format."""

from __future__ import annotations

import dataclasses
import math
import os
import struct
from typing import TYPE_CHECKING

from assay.errors import ModelError
from assay.formats.architectures import by_model_type, gguf_name, is_computed, with_rotary
from assay.formats.format import Format, formats
from assay.formats.gguf.checkpoint import file_type, pairs_of, read
from assay.formats.gguf.file import describe_header, is_gguf, read_header, write_gguf
from assay.formats.rope import FREQUENCIES, llama3_divisors
from assay.formats.stored import StoredSize
from assay.formats.tensors import GGML_NUMBERS, Tensor, has_whole_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from assay.formats.config import ModelConfig
    from assay.formats.format import Checkpoint, Written


def _sizes(path: Path) -> list[StoredSize]:
    return [StoredSize(t.size, math.prod(t.shape)) for t in read_header(path).tensors]


def _tensors(checkpoint: Checkpoint, where: str) -> list[Tensor]:
    config = checkpoint.config
    wants = by_model_type(config.model_type, where).rotary
    tensors = []
    for tensor in checkpoint.stored():
        if is_computed(tensor.name):
            continue
        if tensor.name == "lm_head.weight" and config.is_tied:
            continue
        name = FREQUENCIES if tensor.name == FREQUENCIES else gguf_name(tensor.name)
        if name is None:
            raise ModelError(
                f"{where}: has a tensor {tensor.name} without a name in GGUF. Keep the model in "
                "its format."
            )
        turned = with_rotary(tensor, checkpoint.rotary, wants, config)
        tensors.append(dataclasses.replace(turned, name=name))
    if FREQUENCIES not in {tensor.name for tensor in tensors}:
        tensors += _frequencies(config, where)
    return tensors


def _frequencies(config: ModelConfig, where: str) -> list[Tensor]:
    scaling = config.rope_scaling
    if scaling is None or scaling.rope_type != "llama3":
        return []
    divisors = llama3_divisors(config.rope_base, config.head_size(where), scaling)
    data = struct.pack(f"<{len(divisors)}f", *divisors)
    return [Tensor(FREQUENCIES, "F32", (len(divisors),), len(data), lambda: data)]


def _write(
    path: Path, checkpoint: Checkpoint, tensors: Sequence[Tensor], written: Written, source: Path
) -> None:
    pairs = checkpoint.gguf or pairs_of(checkpoint, source.stem, file_type(tensors), str(source))
    with path.open("wb") as file:
        write_gguf(file, pairs, tensors, written)
        os.fsync(file.fileno())


formats.register("gguf")(
    Format(
        title="GGUF",
        recognises=is_gguf,
        read=read,
        sizes=_sizes,
        describe=lambda path: describe_header(path, read_header(path)),
        tensors=_tensors,
        holds=lambda tensor: tensor.encoding in GGML_NUMBERS and has_whole_rows(tensor),
        write=_write,
        suffix=".gguf",
        wide_vectors=True,  # llama.cpp accepts no others
    )
)
