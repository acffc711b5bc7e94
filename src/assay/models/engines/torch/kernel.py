"""Compute ``attention`` with a Triton kernel. Imported only on a GPU."""

# mypy: ignore-errors
# ruff: noqa: N803 - compile-time constants are in capitals

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def decode_attention(
    query, keys, values, out, position, scale, window,
    query_row, query_head, key_row, key_head, key_at, value_row, value_head, value_at,
    out_row, out_head,
    GROUP: tl.constexpr, ROWS: tl.constexpr, KEY: tl.constexpr, KEY_PADDED: tl.constexpr,
    VALUE: tl.constexpr, VALUE_PADDED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute one sequence and one key head: online softmax over blocks of its past."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    length = tl.load(position + row).to(tl.int32) + 1
    begin = 0
    if window > 0:
        begin = tl.maximum(length - window, 0)
    mine = tl.arange(0, ROWS)
    key_part = tl.arange(0, KEY_PADDED)
    value_part = tl.arange(0, VALUE_PADDED)
    heads = head * GROUP + mine
    q = tl.load(
        query + row * query_row + heads[:, None] * query_head + key_part[None, :],
        mask=(mine[:, None] < GROUP) & (key_part[None, :] < KEY),
        other=0.0,
    )
    best = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    gathered = tl.zeros([ROWS, VALUE_PADDED], tl.float32)
    for start in range((begin // BLOCK) * BLOCK, length, BLOCK):
        at = start + tl.arange(0, BLOCK)
        valid = (at < length) & (at >= begin)
        k = tl.load(
            keys + row * key_row + head * key_head + at[:, None] * key_at + key_part[None, :],
            mask=valid[:, None] & (key_part[None, :] < KEY),
            other=0.0,
        )
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where(valid[None, :], scores, float("-inf"))
        new_best = tl.maximum(best, tl.max(scores, 1))
        weights = tl.exp(scores - new_best[:, None])
        shrink = tl.exp(best - new_best)
        total = total * shrink + tl.sum(weights, 1)
        v = tl.load(
            values
            + row * value_row
            + head * value_head
            + at[:, None] * value_at
            + value_part[None, :],
            mask=valid[:, None] & (value_part[None, :] < VALUE),
            other=0.0,
        )
        gathered = gathered * shrink[:, None] + tl.dot(weights.to(v.dtype), v)
        best = new_best
    tl.store(
        out + row * out_row + heads[:, None] * out_head + value_part[None, :],
        (gathered / total[:, None]).to(out.dtype.element_ty),
        mask=(mine[:, None] < GROUP) & (value_part[None, :] < VALUE),
    )
