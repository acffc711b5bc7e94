"""Describe the formats that models are read from and converted to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.errors import AssayError, ModelError
from assay.formats.checkpoint import Checkpoint
from assay.formats.stored import StoredModel, StoredSize
from assay.formats.tensors import Tensor
from assay.registry import Registry

Written = Callable[[int], None]  # bytes of a tensor that is done


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of model file or folder, recognised by its content, not its name.

    ``tensors`` returns a checkpoint's tensors with the format's names and rotary order.
    """

    title: str  # for users
    recognises: Callable[[Path], bool]
    read: Callable[[Path], Checkpoint]
    sizes: Callable[[Path], list[StoredSize]]
    describe: Callable[[Path], StoredModel]
    tensors: Callable[[Checkpoint, str], list[Tensor]]
    holds: Callable[[Tensor], bool]
    write: Callable[[Path, Checkpoint, Sequence[Tensor], Written, Path], None]
    suffix: str = ""  # of a file that is written; none: a folder
    wide_vectors: bool = False  # norms and biases as float32 only


formats: Registry[Format] = Registry("model format", "assay.formats.kinds", "assay.formats")


def find_format(path: Path) -> str:
    """Return the name of a path's format; empty if it cannot be read."""
    return next((name for name in formats.names() if formats.get(name).recognises(path)), "")


def target_format(path: Path) -> str:
    """Return the name of the format to write at a path: by its suffix, or else a folder."""
    by_suffix = {formats.get(name).suffix: name for name in formats.names()}
    return by_suffix.get(path.suffix.lower()) or by_suffix[""]


def read_checkpoint(path: Path) -> Checkpoint:
    """Read the model at a path."""
    if not path.exists():
        raise ModelError(
            f"{path}: is not a file or folder. Give a .gguf or .apr file, or a Hugging Face folder."
        )
    name = find_format(path)
    if not name:
        raise ModelError(
            f"{path}: is not a model that can be read. Give a .gguf or .apr file, or a folder with "
            "config.json and .safetensors files."
        )
    return _read_safely(formats.get(name).read, path)


def describe_model(path: Path) -> StoredModel:
    """Return what the files at a path say about their model; nothing if they cannot be read."""
    try:
        name = find_format(path)
        return formats.get(name).describe(path) if name else StoredModel()
    except (AssayError, OSError, ValueError, TypeError, LookupError, AttributeError):
        return StoredModel()  # an engine reports what is wrong when it loads them


def _read_safely(read: Callable[[Path], Checkpoint], path: Path) -> Checkpoint:
    """Read metadata. Report any error in them as damage."""
    try:
        return read(path)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise ModelError(
            f"{path}: its metadata are damaged ({type(error).__name__}: {error}). "
            "Download or convert it again."
        ) from error
