"""safetensors files: a JSON header, then the tensors' bytes."""

from __future__ import annotations

import json
import mmap
import struct
from typing import TYPE_CHECKING, Any, BinaryIO

from assay.errors import ModelError
from assay.models._tensors import PLAIN, Tensor, sizes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

MAX_HEADER = 100_000_000  # the format's own limit


def read_safetensors(path: Path) -> list[Tensor]:
    """The tensors of a file, in the order of its data; nothing of them is read yet."""
    with path.open("rb") as file:
        if file.seek(0, 2) < 8:
            raise _damaged(path, "it is cut off")
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    (size,) = struct.unpack_from("<Q", data)
    if size > min(MAX_HEADER, len(data) - 8):
        raise _damaged(path, f"a header of {size:,} bytes")
    try:
        header = json.loads(bytes(data[8 : 8 + size]))
        header.pop("__metadata__", None)
        tensors = [_tensor(name, entry, data[8 + size :]) for name, entry in header.items()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error
    return [tensor for _, tensor in sorted(tensors, key=lambda found: found[0])]


def write_safetensors(
    file: BinaryIO, tensors: Sequence[Tensor], written: Callable[[int], None]
) -> None:
    """A whole file; ``written`` is told the bytes of each tensor. Large numbers stand first."""
    ordered = sorted(tensors, key=lambda tensor: (-int(PLAIN[tensor.encoding][-1]), tensor.name))
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in ordered:
        header[tensor.name] = {
            "dtype": tensor.encoding,
            "shape": tensor.shape,
            "data_offsets": [offset, offset + tensor.nbytes],
        }
        offset += tensor.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for tensor in ordered:
        file.write(tensor.read())
        written(tensor.nbytes)


def _tensor(name: str, entry: Any, data: memoryview) -> tuple[int, Tensor]:
    encoding, shape = entry["dtype"], tuple(entry["shape"])
    start, end = entry["data_offsets"]
    if encoding not in PLAIN:
        raise ValueError(f"{name} is of the type {encoding}, which cannot be read here")
    if not all(isinstance(number, int) and number >= 0 for number in (*shape, start, end)):
        raise ValueError(f"{name} has no plain shape")
    if end > len(data) or end - start != sizes_of(encoding, shape)[0]:
        raise ValueError(f"{name} does not fit into the file")
    return start, Tensor(name, encoding, shape, end - start, lambda: data[start:end])


def _damaged(path: Path, why: str) -> ModelError:
    return ModelError(f"{path} is a damaged safetensors file ({why}): fetch it again")
