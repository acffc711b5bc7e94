"""Represent tensors as files store them: encoded bytes, read when they are needed."""

from __future__ import annotations

import dataclasses
import functools
import math
import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import ModelError, install_hint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# GGML's types by number: name, values per block, bytes per block.
GGML_TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36),
    10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292), 16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136), 24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4),
    27: ("I64", 1, 8), 28: ("F64", 1, 8), 29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18),
}  # fmt: skip
GGML_NUMBERS = {name: number for number, (name, _, _) in GGML_TYPES.items()}
GGML_BLOCKS = {number: (values, size) for number, (_, values, size) in GGML_TYPES.items()}
# Types that GGML does not have: values per block, bytes per block.
BLOCKS = {
    **{name: (values, size) for name, values, size in GGML_TYPES.values()},
    "U8": (1, 1),
    "BOOL": (1, 1),
    "APR_Q4": (32, 18),  # a float16 scale, then 32 nibbles, each 8 too large
}
APR_Q8 = "APR_Q8"  # one float32 scale, then a signed byte per value
# Encodings that are plain arrays of numbers; numpy has no bfloat16.
PLAIN = {
    "F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8",
    "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8", "U8": "u1", "BOOL": "?",
}  # fmt: skip
FLOATS = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
# Quantisations that can be written: GGML's reference rounding, one scale per 32 numbers.
QUANTISED = {name.lower(): name for name in ("Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0")}
# Numbers to dequantise at a time: few enough for a core's cache, many enough that threads
# rarely wait for Python's lock.
PIECE = 1 << 18
_DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64", "BOOL": "bool",
           "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64", "U8": "uint8"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tensor:
    """A stored tensor. ``read`` returns its ``nbytes`` bytes. The shape has the rows first."""

    name: str
    encoding: str
    shape: tuple[int, ...]
    nbytes: int
    read: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Weight:
    """The numbers of one tensor. Those of a bfloat16 are its bits, in an array of uint16."""

    name: str
    values: NDArray[Any]
    dtype: str  # as torch calls it

    def torch(self) -> Any:
        """Return a torch tensor over the same memory (read-only if the file is mapped)."""
        import warnings

        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it is not writable
            tensor = torch.from_numpy(self.values)
        return tensor.view(torch.bfloat16) if self.dtype == "bfloat16" else tensor


def map_file(path: Path) -> memoryview:
    """Return the bytes of a file, which are read when they are used."""
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def part_of(data: memoryview, start: int, size: int) -> Callable[[], memoryview]:
    """Return a tensor's ``read`` for these bytes of a mapped file."""
    return lambda: data[start : start + size]


def sizes_of(encoding: str, shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the bytes of such a tensor: as one row of blocks, and with each row padded."""
    count = math.prod(shape)
    if encoding == APR_Q8:
        return 4 + count, 4 + count
    values, size = BLOCKS[encoding]
    width = shape[-1] if shape else 1
    return -(-count // values) * size, math.prod(shape[:-1]) * -(-width // values) * size


def decode(tensor: Tensor) -> Weight:
    """Return the numbers. Quantised ones become float32."""
    data = _bytes(tensor)
    if tensor.encoding in PLAIN:
        values = data.view(PLAIN[tensor.encoding]).reshape(tensor.shape)
        return Weight(tensor.name, values, _DTYPES[tensor.encoding])
    return Weight(tensor.name, _dequantise(tensor, data), "float32")


def cast(tensor: Tensor, encoding: str) -> Tensor:
    """Return the numbers in an encoding of FLOATS or QUANTISED, rounded to nearest if needed."""
    if tensor.encoding == encoding:
        return tensor
    return dataclasses.replace(
        tensor,
        encoding=encoding,
        nbytes=sizes_of(encoding, tensor.shape)[0],
        read=lambda: _encode(decode(tensor), encoding),
    )


def reorder_rows(tensor: Tensor, order: Callable[[NDArray[Any]], NDArray[Any]]) -> Tensor:
    """Return the rows in another order, bytes unchanged; ``order`` maps row numbers."""
    rows = tensor.shape[0]
    if not _by_rows(tensor):
        tensor = cast(tensor, "F32")

    def read() -> Any:
        import numpy as np

        data = _bytes(tensor).reshape(rows, -1)
        return data[order(np.arange(rows))].reshape(-1).data

    return dataclasses.replace(tensor, read=read)


def split_rows(tensor: Tensor, piece: int = 0) -> Iterator[tuple[slice, Tensor]]:
    """Yield parts of about ``piece`` numbers, each with its rows; all in one if rows are mixed.

    A piece of 0 means ``PIECE``, which suits a CPU core.
    """
    piece = piece or PIECE
    if len(tensor.shape) < 2 or math.prod(tensor.shape) <= piece or not _by_rows(tensor):
        yield slice(None), tensor
        return
    data, total, rest = _bytes(tensor), tensor.shape[0], tensor.shape[1:]
    row, count = tensor.nbytes // total, max(1, piece // math.prod(rest))
    for start in range(0, total, count):
        part = data[start * row : (start + count) * row]
        some = dataclasses.replace(
            tensor,
            shape=(len(part) // row, *rest),
            nbytes=len(part),
            read=functools.partial(getattr, part, "data"),
        )
        yield slice(start, start + count), some


def has_whole_rows(tensor: Tensor) -> bool:
    """Return whether its rows are whole blocks without padding, as GGML needs them."""
    width = tensor.shape[-1] if tensor.shape else 1
    return tensor.encoding in BLOCKS and width % BLOCKS[tensor.encoding][0] == 0


def _bytes(tensor: Tensor) -> NDArray[np.uint8]:
    import numpy as np

    return np.frombuffer(tensor.read(), np.uint8)


def _by_rows(tensor: Tensor) -> bool:
    """Return whether each row is whole blocks, padded at its end if needed."""
    return tensor.encoding != APR_Q8 and tensor.nbytes == sizes_of(tensor.encoding, tensor.shape)[1]


def _dequantise(tensor: Tensor, data: NDArray[np.uint8]) -> NDArray[np.float32]:
    import numpy as np

    if tensor.encoding == APR_Q8:
        scale = data[:4].view("<f4")[0]
        numbers: NDArray[np.float32] = data[4:].view("i1").astype(np.float32) * scale
        return numbers.reshape(tensor.shape)
    values, size = BLOCKS[tensor.encoding]
    blocks = data.reshape(-1, size)
    numbers = _apr_q4(blocks) if tensor.encoding == "APR_Q4" else _ggml(blocks, tensor)
    if _by_rows(tensor):
        width = tensor.shape[-1]
        return numbers.reshape(-1, -(-width // values) * values)[:, :width].reshape(tensor.shape)
    return numbers.reshape(-1)[: math.prod(tensor.shape)].reshape(tensor.shape)


def _apr_q4(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    import numpy as np

    scales = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    pairs = blocks[:, 2:]
    nibbles = np.stack([pairs & 15, pairs >> 4], axis=-1).reshape(len(blocks), 32)
    numbers: NDArray[np.float32] = (nibbles.astype(np.float32) - 8) * scales
    return numbers


def _ggml(blocks: NDArray[np.uint8], tensor: Tensor) -> NDArray[np.float32]:
    import numpy as np

    kinds, quants = _gguf()
    values, _ = BLOCKS[tensor.encoding]
    numbers: NDArray[np.float32] = np.empty((len(blocks), values), np.float32)
    try:
        kind = kinds.GGMLQuantizationType[tensor.encoding]
        for start in range(0, len(blocks), PIECE // values):
            # As one row: the package takes 16 rows at a time, few numbers if rows are short.
            piece = slice(start, start + PIECE // values)
            some = quants.dequantize(blocks[piece].reshape(1, -1), kind)
            numbers[piece] = some.reshape(-1, values)
    except (NotImplementedError, KeyError) as error:  # an old gguf package knows fewer types
        raise ModelError(
            f"{tensor.name}: is stored as {tensor.encoding}, which cannot be dequantised here. "
            "Run the GGUF file with llama.cpp."
        ) from error
    return numbers


def _gguf() -> tuple[Any, Any]:
    """Return the modules of the gguf package: its constants and its quantisation."""
    try:
        from gguf import constants, quants
    except ImportError as error:
        raise ModelError(
            f"gguf: is not installed, and quantised weights need it. Run {install_hint('apr')}."
        ) from error
    return constants, quants


def _encode(weight: Weight, encoding: str) -> Any:
    import numpy as np

    values = weight.values
    if weight.dtype == "bfloat16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    if encoding in QUANTISED.values():
        kinds, quants = _gguf()
        numbers = np.ascontiguousarray(values, np.float32)
        return quants.quantize(numbers, kinds.GGMLQuantizationType[encoding]).reshape(-1).data
    if encoding != "BF16":
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(values, PLAIN[encoding]).reshape(-1).data
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = (bits >> 16) | 0x40
    return np.where(np.isnan(bits.view(np.float32)), quiet, rounded).astype("<u2").reshape(-1).data
