"""Describe a model's file for the stages of a check, whatever its format."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.formats.huggingface.safetensors import BITS
from assay.formats.tensors import APR_Q8, BLOCKS, sizes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from assay.quality.check.shapes import ShapeSettings


class SkippedError(Exception):
    """An error that says why this cannot be judged here."""


class EngineOnlyError(SkippedError):
    """An error for what only the engine that runs the model can judge."""


@dataclass(frozen=True, slots=True)
class TensorPart:
    """A tensor under the file's own name, and its position according to the file."""

    name: str
    encoding: str  # empty: the file's type is not known
    shape: tuple[int, ...]
    file: Path
    start: int
    size: int

    @property
    def end(self) -> int:
        return self.start + self.size


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A file for the tokenizers library, or its content."""

    path: str = ""
    content: str = ""  # JSON
    rows: int = 0  # of the embedding; 0: not known


@dataclass(frozen=True, slots=True)
class Template:
    """A chat template. ``marks`` are the special tokens that it may name."""

    text: str
    marks: dict[str, str]


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a model's file. All functions may raise ModelError or SkippedError."""

    summary: str
    parts: Callable[[], Sequence[TensorPart]]
    faults: Callable[[Sequence[TensorPart]], Iterable[str]]  # of the index
    settings: Callable[[Mapping[str, tuple[int, ...]]], ShapeSettings]  # from the tensors' shapes
    tokenizer: Callable[[], Tokenizer]
    template: Callable[[], Template]


def bytes_needed(part: TensorPart) -> tuple[int, ...]:
    """Return the sizes that fit its shape and encoding: two if a format's writers differ."""
    if part.encoding in BLOCKS or part.encoding == APR_Q8:
        return sizes_of(part.encoding, part.shape)
    return (-(-math.prod(part.shape) * BITS[part.encoding] // 8),)


def common_faults(parts: Sequence[TensorPart], taken: Sequence[TensorPart] = ()) -> Iterator[str]:
    """Yield faults in any format: repeated names, wrong sizes, bad positions, overlaps."""
    for name, count in Counter(part.name for part in parts).items():
        if count > 1:
            yield f"{count:,} tensors have the name '{name}'"
    sizes = {file: file.stat().st_size for file in {part.file for part in parts}}
    for part in parts:
        if not part.encoding:
            yield f"{part.name} has an unknown type"
        elif part.size not in bytes_needed(part):
            yield (
                f"{part.name} has {part.size:,} bytes, but {part.encoding} of the shape "
                f"{list(part.shape)} has {bytes_needed(part)[0]:,}"
            )
        if part.end > sizes[part.file]:
            yield (
                f"{part.name} ends at byte {part.end:,} of a file of {sizes[part.file]:,}: "
                "the file is cut off, or the index is wrong"
            )
    yield from _overlaps([*taken, *parts])


def _overlaps(parts: Iterable[TensorPart]) -> Iterator[str]:
    before: TensorPart | None = None
    for part in sorted(parts, key=lambda part: (str(part.file), part.start)):
        if not part.size:
            continue
        if before and before.file == part.file and part.start < before.end:
            yield f"{before.name} and {part.name} overlap"
        if not before or before.file != part.file or part.end > before.end:
            before = part


def marks_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the special tokens of a tokenizer_config.json, which are texts or objects."""
    marks = {}
    for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
        token = settings.get(name)
        text = token.get("content") if isinstance(token, dict) else token
        if isinstance(text, str):
            marks[name] = text
    return marks
