"""Stored tensors: dequantised, cast, their rows moved."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ModelError
from assay.formats import tensors
from assay.formats.tensors import (
    GGML_TYPES,
    Tensor,
    cast,
    decode,
    has_whole_rows,
    reorder_rows,
    split_rows,
)
from tests.models.small_models import gguf, np, random_tensor


def tensor(encoding: str, shape: tuple[int, ...], data: bytes) -> Tensor:
    return Tensor("t", encoding, shape, len(data), lambda: data)


def test_our_table_of_types_is_ggmls() -> None:
    for kind, sizes in gguf.GGML_QUANT_SIZES.items():
        if kind.value in GGML_TYPES and kind.name != "Q8_1":  # two halves and 32 bytes in ggml.c
            assert GGML_TYPES[kind.value] == (kind.name, *sizes)


@pytest.mark.parametrize("encoding", ["Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q4_K", "Q5_K", "Q6_K"])
def test_quantised_values_are_the_gguf_packages(encoding: str) -> None:
    stored = random_tensor((6, 512), encoding, 1)
    found = decode(tensor(encoding, (6, 512), stored.tobytes()))
    expected = gguf.quants.dequantize(stored, gguf.GGMLQuantizationType[encoding])
    assert found.dtype == "float32"
    assert found.values.shape == (6, 512)
    assert np.isfinite(expected).all()
    assert np.array_equal(found.values, expected)


@pytest.mark.parametrize("encoding", ["Q4_K", "Q6_K"])
def test_rows_padded_to_whole_blocks_and_flat_ones_give_the_same_values(encoding: str) -> None:
    stored = random_tensor((4, 512), encoding, 2)
    all_values = decode(tensor(encoding, (4, 512), stored.tobytes())).values
    padded = decode(tensor(encoding, (4, 300), stored.tobytes()))
    assert np.array_equal(padded.values, all_values[:, :300])
    flat = decode(tensor(encoding, (8, 192), stored.tobytes()[: 6 * stored.nbytes // 8]))
    assert np.array_equal(flat.values.reshape(-1), all_values.reshape(-1)[: 8 * 192])


@pytest.mark.parametrize("encoding", ["F32", "F16", "BF16", "Q4_1", "Q8_0", "Q4_K", "Q6_K"])
@pytest.mark.parametrize("shape", [(7, 512), (2, 512), (1, 2048)])
def test_parts_are_the_whole(
    encoding: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensors, "PIECE", 1024)
    stored = random_tensor(shape, encoding, 3)
    whole = tensor(encoding, shape, stored.tobytes())
    parts = list(split_rows(reorder_rows(whole, lambda rows: rows[::-1])))
    assert len(parts) == -(-shape[0] // 2)
    found = np.concatenate([decode(part).values for _, part in parts])
    assert np.array_equal(found, decode(whole).values[::-1])
    for rows, part in parts:
        assert np.array_equal(decode(part).values, found[rows])


def test_what_has_no_rows_of_whole_blocks_is_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "PIECE", 64)
    for encoding, shape in (("APR_Q8", (4, 64)), ("Q8_0", (16, 16)), ("F32", (256,))):
        size = tensors.sizes_of(encoding, shape)[0]
        ((rows, part),) = split_rows(tensor(encoding, shape, bytes(size)))
        assert (rows, part.shape) == (slice(None), shape)


def test_the_formats_own_four_bits() -> None:
    scale = struct.pack("<e", 0.5)
    blocks = scale + bytes(range(16)) + scale + bytes([0xF0] * 16)
    found = decode(tensor("APR_Q4", (5, 10), blocks)).values.reshape(-1)
    nibbles = [n for byte in range(16) for n in (byte & 15, byte >> 4)] + [0, 15] * 9
    assert found.tolist() == [(nibble - 8) * 0.5 for nibble in nibbles]


def test_the_formats_own_eight_bits() -> None:
    data = struct.pack("<f4b", 0.25, -127, 0, 1, 127)
    assert decode(tensor("APR_Q8", (2, 2), data)).values.tolist() == [[-31.75, 0], [0.25, 31.75]]


def bits(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


@given(st.lists(st.floats(width=32), min_size=1, max_size=20))
def test_bfloat16_is_the_nearest_and_ties_go_to_even(values: list[float]) -> None:
    data = struct.pack(f"<{len(values)}f", *values)
    found = decode(cast(tensor("F32", (len(values),), data), "BF16"))
    for value, low in zip(values, found.values.tolist(), strict=True):
        if value != value:
            assert (low & 0x7F80) == 0x7F80
            assert low & 0x7F
            continue
        below = bits(value) & 0xFFFF0000
        rest = bits(value) - below
        up = rest > 0x8000 or (rest == 0x8000 and below & 0x10000)
        assert low << 16 == below + (0x10000 if up else 0)


def test_what_is_bfloat16_is_float32_exactly() -> None:
    data = np.arange(0x3F00, 0x4100, dtype="<u2")
    wide = decode(cast(tensor("BF16", (2, 256), data.tobytes()), "F32")).values
    assert wide.view(np.uint32).reshape(-1).tolist() == [int(n) << 16 for n in data]


@pytest.mark.parametrize(("encoding", "width"), [("F16", 7), ("Q4_K", 512), ("Q6_K", 300)])
def test_rows_move_without_a_changed_byte(encoding: str, width: int) -> None:
    stored = random_tensor((6, 512 if encoding != "F16" else width), encoding, 3)
    whole = tensor(encoding, (6, width), stored.tobytes())
    turned = reorder_rows(whole, lambda rows: rows[::-1])
    assert bytes(turned.read()) == stored[::-1].tobytes()
    assert np.array_equal(decode(turned).values, decode(whole).values[::-1])


def test_rows_that_share_a_block_are_taken_apart() -> None:
    stored = random_tensor((2, 256), "Q4_K", 4).tobytes()
    flat = tensor("Q4_K", (4, 128), stored)
    assert not has_whole_rows(flat)
    turned = reorder_rows(flat, lambda rows: rows[::-1])
    assert turned.encoding == "F32"
    assert np.array_equal(decode(turned).values, decode(flat).values[::-1])


def test_a_type_that_nobody_can_dequantise_is_named() -> None:
    with pytest.raises(ModelError, match="t: is stored as Q8_1, which cannot be dequantised"):
        decode(tensor("Q8_1", (1, 32), bytes(36)))


@pytest.mark.torch
def test_torch_takes_them_without_a_copy() -> None:
    torch: Any = pytest.importorskip("torch", reason="needs torch")
    data = np.arange(8, dtype="<u2").tobytes()
    assert decode(tensor("BF16", (2, 4), data)).torch().dtype == torch.bfloat16
    assert decode(tensor("F16", (2, 4), data)).torch().dtype == torch.float16
