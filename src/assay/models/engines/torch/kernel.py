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


@triton.jit
def rms_norm(x, weight, out, eps, WIDTH: tl.constexpr, PADDED: tl.constexpr):
    """Normalise one row in float32. Round before the weight, as transformers does."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, PADDED)
    inside = at < WIDTH
    value = tl.load(x + row * WIDTH + at, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / WIDTH + eps)
    rounded = (value * scale).to(out.dtype.element_ty).to(tl.float32)
    product = rounded * tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * WIDTH + at, product.to(out.dtype.element_ty), mask=inside)


@triton.jit
def rotate(
    x, cos, sin, out, tokens, x_row, x_head, x_at, cos_row, cos_at, out_row, out_head, out_at,
    HALF: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    """Rotate one head of one token. Round every product, as transformers does."""
    row = (tl.program_id(0) // tokens).to(tl.int64)
    token = (tl.program_id(0) % tokens).to(tl.int64)
    head = tl.program_id(1)
    at = tl.arange(0, PADDED)
    inside = at < HALF
    kind = out.dtype.element_ty
    source = x + row * x_row + head * x_head + token * x_at + at
    angles = row * cos_row + token * cos_at + at
    first = tl.load(source, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(source + HALF, mask=inside, other=0.0).to(tl.float32)
    target = out + row * out_row + head * out_head + token * out_at + at
    for half in tl.static_range(2):
        c = tl.load(cos + angles + half * HALF, mask=inside, other=0.0).to(tl.float32)
        s = tl.load(sin + angles + half * HALF, mask=inside, other=0.0).to(tl.float32)
        mine = first if half == 0 else second
        other = -second if half == 0 else first
        product = (mine * c).to(kind).to(tl.float32) + (other * s).to(kind).to(tl.float32)
        tl.store(target + half * HALF, product.to(kind), mask=inside)


@triton.jit
def log_sum_exp(x, out, x_row, WIDTH, BLOCK: tl.constexpr):
    """Compute one row in float32, in one pass."""
    row = tl.program_id(0).to(tl.int64)
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, WIDTH, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * x_row + at, mask=at < WIDTH, other=float("-inf")).to(tl.float32)
        new_best = tl.maximum(best, value)
        shift = tl.where(new_best == float("-inf"), 0.0, new_best)
        total = total * tl.exp(best - shift) + tl.exp(value - shift)
        best = new_best
    most = tl.max(best, 0)
    tl.store(out + row, most + tl.log(tl.sum(total * tl.exp(best - most), 0)))
