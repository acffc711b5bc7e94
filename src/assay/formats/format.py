"""The formats that models are read from and converted into: what each holds, how it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from assay.errors import ModelError
from assay.formats.checkpoint import Checkpoint
from assay.formats.tensors import Tensor
from assay.registry import Registry

Written = Callable[[int], None]  # bytes of a tensor that is done


class StoredSize(NamedTuple):
    """Bytes that a tensor takes in its file, and its numbers."""

    bytes: int
    numbers: int


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of model file or folder; its content, not its name, says which it is.

    ``tensors`` puts a checkpoint's under the format's names and in its rotary order.
    """

    title: str  # for users
    recognises: Callable[[Path], bool]
    read: Callable[[Path], Checkpoint]
    sizes: Callable[[Path], list[StoredSize]]
    tensors: Callable[[Checkpoint, str], list[Tensor]]
    holds: Callable[[Tensor], bool]
    write: Callable[[Path, Checkpoint, Sequence[Tensor], Written, Path], None]
    suffix: str = ""  # of a file that is written; none: a folder
    wide_vectors: bool = False  # norms and biases as float32 only


formats: Registry[Format] = Registry("model format", "assay.formats.kinds", "assay.formats")


def find_format(path: Path) -> str:
    """Return the name of the format that a path has; empty if it has none that can be read."""
    return next((name for name in formats.names() if formats.get(name).recognises(path)), "")


def target_format(path: Path) -> str:
    """Return the name of the format to write under a path: by its ending, or else a folder."""
    by_suffix = {formats.get(name).suffix: name for name in formats.names()}
    return by_suffix.get(path.suffix.lower()) or by_suffix[""]


def read_checkpoint(path: Path) -> Checkpoint:
    """Read the model at a path."""
    if not path.exists():
        raise ModelError(f"no model at {path}: give a .gguf or .apr file or a Hugging Face folder")
    name = find_format(path)
    if not name:
        raise ModelError(
            f"{path} is no model that can be read: give a .gguf or .apr file, or a folder with "
            "config.json and .safetensors files"
        )
    return _understood(formats.get(name).read, path)


def _understood(read: Callable[[Path], Checkpoint], path: Path) -> Checkpoint:
    """Metadata are anything that a writer, or damage, made of them."""
    try:
        return read(path)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise ModelError(
            f"{path} has metadata that cannot be understood ({type(error).__name__}: {error}): "
            "fetch or convert it again"
        ) from error
