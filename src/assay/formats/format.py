"""Describe the formats that models are read from and converted to."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from assay.errors import AssayError, ModelError
from assay.formats.architectures import Rotary, with_rotary
from assay.formats.config import JsonFile, ModelConfig, TokenizerConfig
from assay.formats.gguf.file import GgufPair
from assay.formats.rope import FREQUENCIES
from assay.formats.stored import StoredModel, StoredSize
from assay.formats.tensors import Tensor, Weight, decode
from assay.formats.tokenizer_json import TokenizerJson
from assay.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator


FOUR_BIT, EIGHT_BIT = 5.1, 9.0  # bits per weight at most, scales included


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything that transformers and tokenizers need. Weights are read on demand.

    ``stored`` returns the tensors as the file has them, under Hugging Face's names but in the
    file's rotary order and encodings. ``gguf`` is the metadata of the original GGUF file, if any.
    """

    config: ModelConfig
    generation_config: JsonFile  # eos_token_id: all tokens that end an answer
    tokenizer_json: TokenizerJson
    tokenizer_config: TokenizerConfig
    rotary: Rotary
    stored: Callable[[], list[Tensor]]
    gguf: tuple[GgufPair, ...] = ()

    def tensors(self) -> Iterator[Weight]:
        """Yield every weight under its Hugging Face name and in transformers' order, one by one."""
        for tensor in self.hf_tensors():
            yield decode(tensor)

    def hf_tensors(self) -> list[Tensor]:
        """Return the same tensors as ``tensors``, not yet read."""
        return [
            with_rotary(tensor, self.rotary, "halves", self.config)
            for tensor in self.stored()
            if tensor.name != FREQUENCIES  # it is part of the config
        ]


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
    try:
        return formats.get(name).read(path)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise ModelError(  # any error in the metadata is damage
            f"{path}: its metadata are damaged ({type(error).__name__}: {error}). "
            "Download or convert it again."
        ) from error


def describe_model(path: Path) -> StoredModel:
    """Return what the files at a path say about their model; nothing if they cannot be read."""
    try:
        name = find_format(path)
        return formats.get(name).describe(path) if name else StoredModel()
    except (AssayError, OSError, ValueError, TypeError, LookupError, AttributeError):
        return StoredModel()  # an engine reports what is wrong when it loads them


Precision = Literal["same", "8-bit", "4-bit"]


def bits_per_weight(path: Path) -> float:
    """Return the median of bits per weight: files store some tensors more precisely."""
    sizes = formats.get(find_format(path) or "hf").sizes(path)
    weights = sum(size.numbers for size in sizes)
    if not weights:
        raise ModelError(f"{path}: has no weights. Download or convert it again.")
    by_bits = sorted((8 * size / count, count) for size, count in sizes if count)
    seen = itertools.accumulate(count for _, count in by_bits)
    return next(
        bits for (bits, _), so_far in zip(by_bits, seen, strict=True) if 2 * so_far >= weights
    )


def precision(path: Path) -> Precision:
    bits = bits_per_weight(path)
    if bits <= FOUR_BIT:
        return "4-bit"
    return "8-bit" if bits <= EIGHT_BIT else "same"
