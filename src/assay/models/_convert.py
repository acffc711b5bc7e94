"""Model files from one format into another; what the target can hold goes over as it is."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from assay.errors import ModelError, UsageError
from assay.models import _apr_checkpoint, _apr_write, _gguf_checkpoint, _gguf_write, _hf_folder
from assay.models._architectures import by_model_type, gguf_name, with_rotary
from assay.models._checkpoint import Checkpoint, read_checkpoint
from assay.models._rope import FREQUENCIES, base_and_scaling, llama3_divisors
from assay.models._tensors import (
    FLOATS,
    GGML_NUMBERS,
    PLAIN,
    Tensor,
    cast,
    has_whole_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Progress = Callable[[int, int], None]  # bytes done, of all
# GGUF's number for a file that is mostly of one encoding.
FILE_TYPES = {
    "F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10,
    "Q3_K": 12, "Q4_K": 15, "Q5_K": 17, "Q6_K": 18, "BF16": 32,
}  # fmt: skip
_INTEGERS = set(PLAIN) - set(FLOATS.values()) - {"F64"}


@dataclass(frozen=True, slots=True)
class Conversion:
    """What was written; ``changed`` counts the tensors whose encoding had to change."""

    source: str
    target: str
    format: str
    tensors: int
    bytes: int
    changed: dict[str, int]


def convert(
    source: Path, target: Path, *, dtype: str, force: bool, progress: Progress
) -> Conversion:
    """Writes ``target``; its ending says the format. It is there whole or not at all."""
    kind = target.suffix.lower() if target.suffix.lower() in _WRITERS else ""
    _check_free(target, folder=not kind, force=force)
    checkpoint = read_checkpoint(source)
    stored = _as_wanted(checkpoint, kind, str(source))
    tensors = [_encoded(tensor, kind, dtype, source) for tensor in stored]
    changed = Counter(
        f"{old.encoding} to {new.encoding}"
        for old, new in zip(stored, tensors, strict=True)
        if old.encoding != new.encoding
    )
    if changed:
        checkpoint = _retyped(checkpoint, tensors)
    total, done = sum(tensor.nbytes for tensor in tensors), 0

    def written(count: int) -> None:
        nonlocal done
        done += count
        progress(done, total)

    with _swapped_in(target, folder=not kind) as partial:
        if kind:
            with partial.open("wb") as file:
                _WRITERS[kind](file, checkpoint, tensors, written, source)
                file.flush()
                os.fsync(file.fileno())
        else:
            _hf_folder.write(partial, checkpoint, tensors, written)
    size = target.stat().st_size if kind else sum(f.stat().st_size for f in target.iterdir())
    name = kind.removeprefix(".") or "hf"
    return Conversion(str(source), str(target), name, len(tensors), size, dict(changed))


def _as_wanted(checkpoint: Checkpoint, kind: str, where: str) -> list[Tensor]:
    """The tensors under the target's names and in its rotary order; no byte of a row changes."""
    if kind == ".apr":
        return checkpoint.stored()
    if not kind:
        return checkpoint.hf_tensors()
    config = checkpoint.config
    wants = by_model_type(str(config.get("model_type", "")), where).rotary
    found = []
    for tensor in checkpoint.stored():
        name = FREQUENCIES if tensor.name == FREQUENCIES else gguf_name(tensor.name)
        if tensor.name.endswith("rotary_emb.inv_freq"):
            continue  # computed from the settings
        if tensor.name == "lm_head.weight" and config.get("tie_word_embeddings"):
            continue
        if name is None:
            raise ModelError(
                f"{where} has a tensor {tensor.name} that GGUF has no name for: keep the model in "
                "the format it has"
            )
        turned = with_rotary(tensor, checkpoint.rotary, wants, config)
        found.append(dataclasses.replace(turned, name=name))
    base, scaling = base_and_scaling(config)
    if scaling and scaling["rope_type"] == "llama3" and FREQUENCIES not in {t.name for t in found}:
        head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
        divisors = llama3_divisors(base, head, scaling)
        data = struct.pack(f"<{len(divisors)}f", *divisors)
        found.append(Tensor(FREQUENCIES, "F32", (len(divisors),), len(data), lambda: data))
    return found


def _encoded(tensor: Tensor, kind: str, dtype: str, source: Path) -> Tensor:
    """In the encoding that was asked for, else in its own, else as float32, which is exact."""
    if tensor.encoding in _INTEGERS:
        if _holds(kind, tensor):
            return tensor
        raise ModelError(
            f"{source} has a tensor {tensor.name} of {tensor.encoding}, which the target cannot "
            "hold: keep the model in the format it has"
        )
    if kind == ".gguf" and len(tensor.shape) == 1:
        return cast(tensor, "F32")  # llama.cpp computes with no other norms and biases
    if dtype:
        return cast(tensor, FLOATS[dtype])
    return tensor if _holds(kind, tensor) else cast(tensor, "F32")


def _holds(kind: str, tensor: Tensor) -> bool:
    if kind == ".gguf":
        return tensor.encoding in GGML_NUMBERS and has_whole_rows(tensor)
    return tensor.encoding in (_apr_write.NUMBERS if kind == ".apr" else PLAIN)


def _retyped(checkpoint: Checkpoint, tensors: Sequence[Tensor]) -> Checkpoint:
    """With GGUF metadata that say the encoding most tensors have now."""
    pairs = tuple(
        dataclasses.replace(pair, value=_file_type(tensors))
        if pair.key == "general.file_type"
        else pair
        for pair in checkpoint.gguf
    )
    return dataclasses.replace(checkpoint, gguf=pairs)


def _file_type(tensors: Sequence[Tensor]) -> int:
    matrices = Counter(tensor.encoding for tensor in tensors if len(tensor.shape) > 1)
    usual = matrices.most_common(1)
    return FILE_TYPES.get(usual[0][0], 0) if usual else 0


def _write_gguf(
    file: BinaryIO,
    checkpoint: Checkpoint,
    tensors: Sequence[Tensor],
    written: Callable[[int], None],
    source: Path,
) -> None:
    pairs = checkpoint.gguf or _gguf_checkpoint.pairs_of(
        checkpoint, source.stem, _file_type(tensors), str(source)
    )
    _gguf_write.write_gguf(file, pairs, tensors, written)


def _write_apr(
    file: BinaryIO,
    checkpoint: Checkpoint,
    tensors: Sequence[Tensor],
    written: Callable[[int], None],
    source: Path,
) -> None:
    metadata = _apr_checkpoint.metadata_of(checkpoint, source.stem, tensors)
    _apr_write.write_apr(file, metadata, tensors, written)


_WRITERS = {".gguf": _write_gguf, ".apr": _write_apr}


def _check_free(target: Path, *, folder: bool, force: bool) -> None:
    if not target.exists():
        return
    if target.is_dir() != folder or (folder and not _hf_folder.is_hf_folder(target)):
        raise UsageError(f"{target} is something else than a model of this format: choose another")
    if not force:
        raise UsageError(f"{target} is there already: choose another, or replace it with --force")


@contextlib.contextmanager
def _swapped_in(target: Path, *, folder: bool) -> Iterator[Path]:
    """A name to write under; the target is replaced when all is written."""
    partial = target.with_name(target.name + ".part")
    _remove(partial)
    target.parent.mkdir(parents=True, exist_ok=True)
    if folder:
        partial.mkdir()
    try:
        yield partial
        if folder:
            _remove(target)
        partial.replace(target)
    finally:
        _remove(partial)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
