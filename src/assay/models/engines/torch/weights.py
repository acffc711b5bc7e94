"""Read the weights of a model file as torch tensors, dequantised by threads or by the GPU."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import torch

from assay.formats.architectures import is_computed
from assay.formats.tensors import BLOCKS, decode, has_whole_rows, split_rows
from assay.models.engines.torch.dequantise import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assay.formats.tensors import Tensor

GPU_PIECE = 1 << 25  # numbers at a time: enough to keep a GPU busy, within 1 GB of its memory


def read_weights(
    tensors: Sequence[Tensor], model: Any, device: str = "cpu"
) -> dict[str, torch.Tensor]:
    """Return the tensors of a file in the data types of ``model``, whose own have no memory.

    They are created on ``device``. A GPU gets the quantised bytes and dequantises them itself.
    Raise ValueError if the file lacks a weight of the model, has others, or other shapes.
    """
    missing: dict[str, torch.Tensor] = dict(model.state_dict())
    weights: dict[str, torch.Tensor] = {}
    tensors = [tensor for tensor in tensors if not is_computed(tensor.name)]
    for tensor in tensors:
        if (target := missing.pop(tensor.name, None)) is None:
            raise ValueError(f"transformers' {model.config.model_type} has no weight {tensor.name}")
        if tensor.shape != tuple(target.shape):
            raise ValueError(
                f"{tensor.name} has the shape {tensor.shape}, the model needs {tuple(target.shape)}"
            )
        weights[tensor.name] = torch.empty(tensor.shape, dtype=target.dtype, device=device)
    if model.config.tie_word_embeddings:
        missing.pop("lm_head.weight", None)
    if missing:
        raise ValueError(f"the file lacks the weight {next(iter(missing))}")

    def fill(part: tuple[torch.Tensor, Tensor]) -> None:
        target, tensor = part
        target.copy_(_numbers(tensor, device))

    parts = (
        (weights[tensor.name][rows], some)
        for tensor in tensors
        for rows, some in split_rows(tensor, 0 if device == "cpu" else GPU_PIECE)
    )
    with _one_thread_a_copy() as threads, ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(fill, parts):
            pass
    return weights


def _numbers(tensor: Tensor, device: str) -> torch.Tensor:
    if device == "cpu" or tensor.encoding not in FORMATS or not has_whole_rows(tensor):
        return decode(tensor).torch()
    return dequantise_on(tensor, device)


def dequantise_on(tensor: Tensor, device: str) -> torch.Tensor:
    """Return the numbers of a tensor in whole blocks, computed on the device."""
    stored = torch.frombuffer(bytearray(tensor.read()), dtype=torch.uint8).to(device)
    blocks = stored.view(-1, BLOCKS[tensor.encoding][1])
    return FORMATS[tensor.encoding](blocks).view(tensor.shape)


@contextlib.contextmanager
def _one_thread_a_copy() -> Iterator[int]:
    """Yield the number of threads that torch would use. Inside, torch uses one.

    Otherwise each copying thread would wait for its own threads.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)
