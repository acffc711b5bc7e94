"""Read the weights of a model file as torch tensors, dequantised by threads or by the GPU.

A function of FORMATS takes the bytes of blocks, one block per row, and returns float32 numbers, one
block per row. The operations and their order are those of the gguf package, so results are equal
bit by bit. That package dequantises the formats that are missing here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from assay.formats.architectures import is_computed
from assay.formats.tensors import BLOCKS, decode, has_whole_rows, split_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assay.formats.tensors import Tensor as StoredTensor


GPU_PIECE = 1 << 25  # numbers at a time: enough to keep a GPU busy, within 1 GB of its memory


def _half(column: Tensor) -> Tensor:
    """Read two bytes of each block as a float16, and return it as float32."""
    return column.contiguous().view(torch.float16).float()


def _bits(packed: Tensor, width: int, run: int) -> Tensor:
    """Unpack numbers of ``width`` bits. Each run of bytes gives its lowest bits first."""
    shifts = torch.arange(0, 8, width, dtype=torch.uint8, device=packed.device).view(1, 1, -1, 1)
    runs = packed.reshape(len(packed), -1, 1, run)
    return ((runs >> shifts) & ((1 << width) - 1)).flatten(1)


def _q4_0(blocks: Tensor) -> Tensor:
    return _half(blocks[:, :2]) * (_bits(blocks[:, 2:], 4, 16).float() - 8)


def _q4_1(blocks: Tensor) -> Tensor:
    return _half(blocks[:, :2]) * _bits(blocks[:, 4:], 4, 16).float() + _half(blocks[:, 2:4])


def _fifth_bits(packed: Tensor) -> Tensor:
    """Return bit i of 32 as bit 5 of number i."""
    return _bits(packed, 1, 1) << 4


def _q5_0(blocks: Tensor) -> Tensor:
    numbers = _bits(blocks[:, 6:], 4, 16) | _fifth_bits(blocks[:, 2:6])
    return _half(blocks[:, :2]) * (numbers.float() - 16)


def _q5_1(blocks: Tensor) -> Tensor:
    numbers = _bits(blocks[:, 8:], 4, 16) | _fifth_bits(blocks[:, 4:8])
    return _half(blocks[:, :2]) * numbers.float() + _half(blocks[:, 2:4])


def _q8_0(blocks: Tensor) -> Tensor:
    return blocks[:, 2:].contiguous().view(torch.int8).float() * _half(blocks[:, :2])


def _q2_k(blocks: Tensor) -> Tensor:
    scales = blocks[:, :16]
    scale = (_half(blocks[:, 80:82]) * (scales & 15).float()).unsqueeze(-1)
    least = (_half(blocks[:, 82:84]) * (scales >> 4).float()).unsqueeze(-1)
    numbers = _bits(blocks[:, 16:80], 2, 32).view(-1, 16, 16).float()
    return (scale * numbers - least).flatten(1)


def _q3_k(blocks: Tensor) -> Tensor:
    high, low = _bits(blocks[:, :32], 1, 32), _bits(blocks[:, 32:96], 2, 32)
    scales = _bits(blocks[:, 96:104], 4, 8) | (_bits(blocks[:, 104:108], 2, 4) << 4)
    scale = (_half(blocks[:, 108:110]) * (scales.float() - 32)).unsqueeze(-1)
    numbers = (low | (high << 2)).float() - 4  # if the third bit is clear, 4 is subtracted
    return (scale * numbers.view(-1, 16, 16)).flatten(1)


def _scales_and_minima(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Unpack the eight 6-bit scales and minima of Q4_K and Q5_K, times their float16 factors."""
    first, second, rest = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scales = torch.cat([first & 63, (rest & 15) | ((first >> 2) & 48)], 1)
    minima = torch.cat([second & 63, (rest >> 4) | ((second >> 2) & 48)], 1)
    factor, factor_of_minima = _half(blocks[:, :2]), _half(blocks[:, 2:4])
    return (
        (factor * scales.float()).unsqueeze(-1),
        (factor_of_minima * minima.float()).unsqueeze(-1),
    )


def _q4_k(blocks: Tensor) -> Tensor:
    scale, least = _scales_and_minima(blocks)
    numbers = _bits(blocks[:, 16:], 4, 32).view(-1, 8, 32).float()
    return (scale * numbers - least).flatten(1)


def _q5_k(blocks: Tensor) -> Tensor:
    scale, least = _scales_and_minima(blocks)
    numbers = _bits(blocks[:, 48:], 4, 32) | (_bits(blocks[:, 16:48], 1, 32) << 4)
    return (scale * numbers.view(-1, 8, 32).float() - least).flatten(1)


def _q6_k(blocks: Tensor) -> Tensor:
    low, high = _bits(blocks[:, :128], 4, 64), _bits(blocks[:, 128:192], 2, 32)
    scales = blocks[:, 192:208].contiguous().view(torch.int8).float()
    scale = (_half(blocks[:, 208:210]) * scales).unsqueeze(-1)
    numbers = (low | (high << 4)).float() - 32
    return (scale * numbers.view(-1, 16, 16)).flatten(1)


FORMATS: dict[str, Callable[[Tensor], Tensor]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "Q2_K": _q2_k,
    "Q3_K": _q3_k,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}


def read_weights(
    tensors: Sequence[StoredTensor], model: Any, device: str = "cpu"
) -> dict[str, Tensor]:
    """Return the tensors of a file in the data types of ``model``, whose own have no memory.

    They are created on ``device``. A GPU gets the quantised bytes and dequantises them itself.
    Raise ValueError if the file lacks a weight of the model, has others, or other shapes.
    """
    missing: dict[str, Tensor] = dict(model.state_dict())
    weights: dict[str, Tensor] = {}
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

    def fill(part: tuple[Tensor, StoredTensor]) -> None:
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


def _numbers(tensor: StoredTensor, device: str) -> Tensor:
    if device == "cpu" or tensor.encoding not in FORMATS or not has_whole_rows(tensor):
        return decode(tensor).torch()
    return dequantise_on(tensor, device)


def dequantise_on(tensor: StoredTensor, device: str) -> Tensor:
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
