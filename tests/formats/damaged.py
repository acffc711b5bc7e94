"""Small models of every format, and ways to damage them."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay.formats.apr.apr_file import AprMetadata, read_apr, write_apr
from assay.formats.gguf.file import read_header
from assay.formats.huggingface.safetensors import read_index
from assay.formats.tensors import Tensor
from assay.models import convert
from tests.models.small_models import write_small

FORMATS = ("gguf", "apr", "folder")
WEIGHTS = "model.safetensors"


def write_bases(folder: Path) -> None:
    """A sound model of each format."""
    write_small(folder / "gguf", ("Q4_K",))
    convert(folder / "gguf", folder / "x.apr", dtype="float16")
    (folder / "x.apr").rename(folder / "apr")
    convert(folder / "gguf", folder / "folder", dtype="float16")


def copy(base: Path, target: Path) -> Path:
    if target.is_dir():
        shutil.rmtree(target)
    target.unlink(missing_ok=True)
    shutil.copytree(base, target) if base.is_dir() else shutil.copyfile(base, target)
    return target


def weights(path: Path) -> Path:
    """The file that has a model's tensors."""
    return path / WEIGHTS if path.is_dir() else path


def rewrite(path: Path, change: Callable[[bytearray], Any]) -> None:
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)


def in_memory(tensor: Tensor) -> Tensor:
    """The same, and its file may be written anew."""
    data = bytes(tensor.read())
    return dataclasses.replace(tensor, read=lambda: data)


def with_sums(path: Path) -> None:
    """An .apr file whose CRCs are right again."""

    def mend(content: bytearray) -> None:
        content[40:44] = struct.pack("<I", zlib.crc32(content[:40] + content[44:64]))
        content[-4:] = struct.pack("<I", zlib.crc32(content[:-4]))

    rewrite(path, mend)


def replaced(old: bytes, new: bytes) -> Callable[[Path], None]:
    """The first such bytes become others, as many; the CRCs of an .apr are mended."""
    assert len(old) == len(new)

    def damage(path: Path) -> None:
        file = weights(path)

        def change(content: bytearray) -> None:
            at = content.index(old)
            content[at : at + len(old)] = new

        rewrite(file, change)
        if file.name == "apr":
            with_sums(file)

    return damage


def packed(layout: str, at: int, *values: int) -> Callable[[Path], None]:
    """Numbers at a place of the file."""

    def damage(path: Path) -> None:
        rewrite(weights(path), lambda content: struct.pack_into(layout, content, at, *values))
        if path.name == "apr":
            with_sums(path)

    return damage


def after(mark: bytes, layout: str, offset: int, *values: int) -> Callable[[Path], None]:
    """Numbers at a place behind the first such bytes: of an entry of an index, or of metadata."""

    def damage(path: Path) -> None:
        at = path.read_bytes().index(mark) + len(mark) + offset
        packed(layout, at, *values)(path)

    return damage


def tensor(name: str, layout: str, offset: int, *values: int) -> Callable[[Path], None]:
    """In a tensor's entry, ``offset`` bytes behind its name."""

    def damage(path: Path) -> None:
        length = "<Q" if path.name == "gguf" else "<H"
        after(struct.pack(length, len(name)) + name.encode(), layout, offset, *values)(path)

    return damage


def setting(key: str, layout: str, *values: int) -> Callable[[Path], None]:
    """A GGUF file's metadata: behind the key stands its type, then the value."""
    return after(struct.pack("<Q", len(key)) + key.encode(), layout, 0, *values)


def header(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """The JSON of a safetensors file."""

    def damage(path: Path) -> None:
        file = path / WEIGHTS
        content = file.read_bytes()
        (size,) = struct.unpack("<Q", content[:8])
        said = json.loads(content[8 : 8 + size])
        text = json.dumps(change(said) or said).encode()
        file.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])

    return damage


def said(file: str, **changes: Any) -> Callable[[Path], None]:
    """Settings in a folder's JSON file; None takes one out."""

    def damage(path: Path) -> None:
        content = {**json.loads((path / file).read_text()), **changes}
        kept = {key: value for key, value in content.items() if value is not None}
        (path / file).write_text(json.dumps(kept))

    return damage


def metadata(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """An .apr file with other metadata, and all else right."""

    def damage(path: Path) -> None:
        file = read_apr(path)
        tensors = [in_memory(tensor) for tensor in file.unread()]
        content = json.loads(json.dumps(file.metadata.content))
        change(content)
        with path.open("wb") as made:
            write_apr(made, AprMetadata(content), tensors, lambda _: None)

    return damage


def pair(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """GGUF metadata that an .apr file keeps."""

    def change(content: dict[str, Any]) -> None:
        (found,) = [one for one in content["assay"]["gguf"] if one[0] == key]
        found[3] = value

    return change


def text(name: str, content: str) -> Callable[[Path], int]:
    return lambda path: (path / name).write_text(content)


def not_a_number(path: Path) -> None:
    """In the last weight of a matrix in the middle."""
    name = "model.layers.1.self_attn.v_proj.weight"
    if path.name == "gguf":
        (found,) = [t for t in read_header(path).tensors if t.name == "blk.1.attn_v.weight"]
        packed("<H", found.start + found.size - 144, 0x7E00)(path)  # the last block's scale
    elif path.name == "apr":
        (one,) = [t for t in read_apr(path).tensors if t.name == name]
        packed("<H", one.start + one.size - 2, 0x7C00)(path)
    else:
        (entry,) = [e for e in read_index(path / WEIGHTS).entries if e.name == name]
        packed("<H", entry.end - 2, 0xFC00)(path)


def cut(share: float) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        file = weights(path)
        os.truncate(file, int(share * file.stat().st_size))

    return damage


def huge_and_empty(content: bytes) -> Callable[[Path], None]:
    """Three gigabytes that take no room, so that lengths in them are inside the file."""

    def damage(path: Path) -> None:
        with path.open("wb") as file:
            file.write(content)
            file.truncate(3 << 30)

    return damage
