"""Register the .apr format, version 2."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from assay.formats.apr.checkpoint import metadata_of, read
from assay.formats.apr.file import is_apr, read_apr
from assay.formats.apr.write import NUMBERS, write_apr
from assay.formats.format import Format, StoredSize, formats

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from assay.formats.checkpoint import Checkpoint
    from assay.formats.format import Written
    from assay.formats.tensors import Tensor


def _sizes(path: Path) -> list[StoredSize]:
    return [StoredSize(t.size, math.prod(t.shape)) for t in read_apr(path).tensors]


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
        tensors=lambda checkpoint, _: checkpoint.stored(),
        holds=lambda tensor: tensor.encoding in NUMBERS,
        write=_write,
        suffix=".apr",
    )
)
