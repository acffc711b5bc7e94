"""Weights of a model file as torch tensors, dequantised by several threads."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import torch

from assay.formats.architectures import is_computed
from assay.formats.tensors import decode, split_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assay.formats.tensors import Tensor


def read_weights(tensors: Sequence[Tensor], model: Any) -> dict[str, torch.Tensor]:
    """Return the tensors of a file in the number formats of ``model``, whose own have no memory.

    ValueError if the file lacks a weight of the model, has others, or has them in other shapes.
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
        weights[tensor.name] = torch.empty(tensor.shape, dtype=target.dtype)
    if model.config.tie_word_embeddings:
        missing.pop("lm_head.weight", None)
    if missing:
        raise ValueError(f"the file lacks the weight {next(iter(missing))}")

    def fill(part: tuple[torch.Tensor, Tensor]) -> None:
        target, tensor = part
        target.copy_(decode(tensor).torch())

    parts = (
        (weights[tensor.name][rows], some)
        for tensor in tensors
        for rows, some in split_rows(tensor)
    )
    with _one_thread_a_copy() as threads, ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(fill, parts):
            pass
    return weights


@contextlib.contextmanager
def _one_thread_a_copy() -> Iterator[int]:
    """Yield how many threads torch would compute with; inside, it computes with one.

    Threads that copy would otherwise each wait for threads of their own.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)
