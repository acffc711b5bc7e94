"""Convert model files between formats. Whatever the target can hold is copied unchanged."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.errors import ModelError, UsageError
from assay.formats.format import Format, find_format, formats, read_checkpoint, target_format
from assay.formats.gguf.checkpoint import file_type
from assay.formats.tensors import FLOATS, PLAIN, QUANTISED, Tensor, cast, has_whole_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from assay.formats.format import Checkpoint

INTEGERS = set(PLAIN) - set(FLOATS.values()) - {"F64"}


@dataclass(frozen=True, slots=True)
class Conversion:
    """A finished conversion. ``changed`` counts the tensors whose encoding had to change."""

    source: str
    target: str
    format: str
    tensors: int
    bytes: int
    changed: dict[str, int]


def convert(
    source: Path, path: Path, *, dtype: str, force: bool, progress: Callable[[int, int], None]
) -> Conversion:
    """Write ``path``, whose suffix decides the format. It appears complete or not at all."""
    name = target_format(path)
    target = formats.get(name)
    _check_free(path, name, force=force)
    checkpoint = read_checkpoint(source)
    stored = target.tensors(checkpoint, str(source))
    tensors = [_encode(tensor, target, dtype, source) for tensor in stored]
    changed = Counter(
        f"{old.encoding} to {new.encoding}"
        for old, new in zip(stored, tensors, strict=True)
        if old.encoding != new.encoding
    )
    if changed:
        checkpoint = _retype(checkpoint, tensors)
    total, done = sum(tensor.nbytes for tensor in tensors), 0

    def report(count: int) -> None:
        nonlocal done
        done += count
        progress(done, total)

    with _swap_in(path) as partial:
        target.write(partial, checkpoint, tensors, report, source)
    files = [path] if target.suffix else path.iterdir()
    size = sum(file.stat().st_size for file in files)
    return Conversion(str(source), str(path), name, len(tensors), size, dict(changed))


def _encode(tensor: Tensor, target: Format, dtype: str, source: Path) -> Tensor:
    """Return the tensor unchanged, unless another data type is requested or needed."""
    if tensor.encoding in INTEGERS:
        if target.holds(tensor):
            return tensor
        raise ModelError(
            f"{source}: the tensor {tensor.name} is {tensor.encoding}, which the target cannot "
            "hold. Keep the model in its format."
        )
    if target.wide_vectors and len(tensor.shape) == 1:
        return cast(tensor, "F32")
    if dtype in QUANTISED:
        return _quantise(tensor, target, dtype)
    if dtype:
        return cast(tensor, FLOATS[dtype])
    return tensor if target.holds(tensor) else cast(tensor, "F32")


def _quantise(tensor: Tensor, target: Format, dtype: str) -> Tensor:
    """Return the tensor quantised, or as float16 if its rows are not whole blocks."""
    quantised = cast(tensor, QUANTISED[dtype])
    if not has_whole_rows(quantised):
        return cast(tensor, "F16")
    if not target.holds(quantised):
        raise UsageError(f"--dtype {dtype}: only a GGUF file can store it. End TARGET with .gguf.")
    return quantised


def _retype(checkpoint: Checkpoint, tensors: Sequence[Tensor]) -> Checkpoint:
    """Return the checkpoint with GGUF metadata that name the encoding of most tensors."""
    pairs = tuple(
        dataclasses.replace(pair, value=file_type(tensors))
        if pair.key == "general.file_type"
        else pair
        for pair in checkpoint.gguf
    )
    return dataclasses.replace(checkpoint, gguf=pairs)


def _check_free(path: Path, name: str, *, force: bool) -> None:
    if not path.exists():
        return
    is_folder = not formats.get(name).suffix
    if path.is_dir() != is_folder or (is_folder and find_format(path) != name):
        raise UsageError(
            f"{path}: exists and is not a model of this format, so it is not replaced. Choose "
            "another path."
        )
    if not force:
        raise UsageError(
            f"{path}: exists already. Choose another path, or replace it with --force."
        )


@contextlib.contextmanager
def _swap_in(path: Path) -> Iterator[Path]:
    """Yield a temporary name. When everything is written, move it to the path."""
    partial, old = (path.with_name(path.name + ending) for ending in (".part", ".old"))
    _remove(partial)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield partial
        if path.is_dir():  # no system call replaces a folder that is not empty
            _remove(old)
            path.replace(old)
        partial.replace(path)
        _remove(old)
    finally:
        _remove(partial)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
