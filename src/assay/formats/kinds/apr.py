"""Register the .apr format, version 2."""

from __future__ import annotations

import math
import os
from collections import Counter
from typing import TYPE_CHECKING

from assay.formats.apr.apr_file import NUMBERS, OURS, is_apr, read_apr, write_apr
from assay.formats.apr.checkpoint import list_gguf_pairs, metadata_of, read
from assay.formats.format import Format, formats
from assay.formats.stored import StoredModel, StoredSize, count_parameters, name_format

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from assay.formats.format import Checkpoint, Written
    from assay.formats.tensors import Tensor


def _sizes(path: Path) -> list[StoredSize]:
    return [StoredSize(t.size, math.prod(t.shape)) for t in read_apr(path).tensors]


def _describe(path: Path) -> StoredModel:
    file = read_apr(path)
    metadata, weights = file.metadata, Counter[str]()
    for tensor in file.tensors:
        weights[tensor.encoding] += math.prod(tensor.shape)
    gguf = {pair.key: pair.value for pair in list_gguf_pairs(metadata)}
    label, title = str(gguf.get("general.size_label", "")), str(gguf.get("general.name", ""))
    config = metadata.get(OURS, {}).get("config", {})
    return StoredModel(
        parameters=count_parameters(
            {tensor.name: tensor.shape for tensor in file.tensors},
            is_tied=bool(metadata.first("tied_embeddings") or config.get("tie_word_embeddings")),
            stated=(label, title, path.name),
        ),
        number_format=name_format(weights, gguf.get("general.file_type")),
        title=title or str(metadata.get("name", "")),
        size_label=label,
    )


def _write(
    path: Path, checkpoint: Checkpoint, tensors: Sequence[Tensor], written: Written, source: Path
) -> None:
    metadata = metadata_of(checkpoint, source.stem, tensors)
    with path.open("wb") as file:
        write_apr(file, metadata, tensors, written)
        os.fsync(file.fileno())


formats.register("apr")(
    Format(
        title=".apr",
        recognises=is_apr,
        read=read,
        sizes=_sizes,
        describe=_describe,
        tensors=lambda checkpoint, _: checkpoint.stored(),
        holds=lambda tensor: tensor.encoding in NUMBERS,
        write=_write,
        suffix=".apr",
    )
)
