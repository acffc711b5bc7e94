"""The formats that models are converted into: what each holds, and how it is written."""

from __future__ import annotations

import dataclasses
import os
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.errors import ModelError
from assay.formats.apr import checkpoint as apr_checkpoint
from assay.formats.apr import write as apr_write
from assay.formats.architectures import by_model_type, gguf_name, with_rotary
from assay.formats.checkpoint import Checkpoint
from assay.formats.gguf import checkpoint as gguf_checkpoint
from assay.formats.gguf import write as gguf_write
from assay.formats.huggingface import checkpoint as hf_folder
from assay.formats.rope import FREQUENCIES, base_and_scaling, llama3_divisors
from assay.formats.tensors import GGML_NUMBERS, PLAIN, Tensor, has_whole_rows

Written = Callable[[int], None]  # bytes of a tensor that is done
# GGUF's number for a file that is mostly of one encoding.
FILE_TYPES = {
    "F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10,
    "Q3_K": 12, "Q4_K": 15, "Q5_K": 17, "Q6_K": 18, "BF16": 32,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """``tensors`` puts a checkpoint's under the format's names and in its rotary order."""

    name: str
    tensors: Callable[[Checkpoint, str], list[Tensor]]
    holds: Callable[[Tensor], bool]
    write: Callable[[Path, Checkpoint, Sequence[Tensor], Written, Path], None]
    is_folder: bool = False
    wide_vectors: bool = False  # norms and biases as float32 only


def target_for(path: Path) -> Target:
    """By the ending; what has none of a file's is a folder."""
    return FILES.get(path.suffix.lower(), FOLDER)


def file_type(tensors: Sequence[Tensor]) -> int:
    matrices = Counter(tensor.encoding for tensor in tensors if len(tensor.shape) > 1)
    usual = matrices.most_common(1)
    return FILE_TYPES.get(usual[0][0], 0) if usual else 0


def _gguf_tensors(checkpoint: Checkpoint, where: str) -> list[Tensor]:
    config = checkpoint.config
    wants = by_model_type(str(config.get("model_type", "")), where).rotary
    found = []
    for tensor in checkpoint.stored():
        if tensor.name.endswith("rotary_emb.inv_freq"):
            continue  # computed from the settings
        if tensor.name == "lm_head.weight" and config.get("tie_word_embeddings"):
            continue
        name = FREQUENCIES if tensor.name == FREQUENCIES else gguf_name(tensor.name)
        if name is None:
            raise ModelError(
                f"{where} has a tensor {tensor.name} that GGUF has no name for: keep the model in "
                "the format it has"
            )
        turned = with_rotary(tensor, checkpoint.rotary, wants, config)
        found.append(dataclasses.replace(turned, name=name))
    if FREQUENCIES not in {tensor.name for tensor in found}:
        found += _frequencies(checkpoint)
    return found


def _frequencies(checkpoint: Checkpoint) -> list[Tensor]:
    config = checkpoint.config
    base, scaling = base_and_scaling(config)
    if scaling is None or scaling["rope_type"] != "llama3":
        return []
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    divisors = llama3_divisors(base, head, scaling)
    data = struct.pack(f"<{len(divisors)}f", *divisors)
    return [Tensor(FREQUENCIES, "F32", (len(divisors),), len(data), lambda: data)]


def _write_gguf(
    path: Path, checkpoint: Checkpoint, tensors: Sequence[Tensor], written: Written, source: Path
) -> None:
    pairs = checkpoint.gguf or gguf_checkpoint.pairs_of(
        checkpoint, source.stem, file_type(tensors), str(source)
    )
    with path.open("wb") as file:
        gguf_write.write_gguf(file, pairs, tensors, written)
        os.fsync(file.fileno())


def _write_apr(
    path: Path, checkpoint: Checkpoint, tensors: Sequence[Tensor], written: Written, source: Path
) -> None:
    metadata = apr_checkpoint.metadata_of(checkpoint, source.stem, tensors)
    with path.open("wb") as file:
        apr_write.write_apr(file, metadata, tensors, written)
        os.fsync(file.fileno())


def _write_folder(
    path: Path, checkpoint: Checkpoint, tensors: Sequence[Tensor], written: Written, _: Path
) -> None:
    path.mkdir()
    hf_folder.write(path, checkpoint, tensors, written)


FILES = {
    ".gguf": Target(
        "gguf",
        _gguf_tensors,
        lambda tensor: tensor.encoding in GGML_NUMBERS and has_whole_rows(tensor),
        _write_gguf,
        wide_vectors=True,  # llama.cpp computes with no others
    ),
    ".apr": Target(
        "apr",
        lambda checkpoint, _: checkpoint.stored(),
        lambda tensor: tensor.encoding in apr_write.NUMBERS,
        _write_apr,
    ),
}
FOLDER = Target(
    "hf",
    lambda checkpoint, _: checkpoint.hf_tensors(),
    lambda tensor: tensor.encoding in PLAIN,
    _write_folder,
    is_folder=True,
)
