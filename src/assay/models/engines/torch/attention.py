"""Compute attention for the slots: one new token of every sequence over its own past.

On a GPU, a Triton kernel reads only what a sequence has, and reads keys once for all the heads that
share them. Elsewhere torch's own attention is used with a mask.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

NAME = "assay_slots"


def over_prompt(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, window: int
) -> torch.Tensor:
    """Compute causal attention inside prompts, padded to the right."""
    import torch

    mask = None
    if window and window < query.shape[2]:
        at = torch.arange(query.shape[2], device=query.device)
        mask = (at[:, None] >= at) & (at[:, None] - at < window)
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=mask is None, scale=scale, enable_gqa=True
    )


def over_past(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    position: torch.Tensor,
    longest: int,
    scale: float,
    window: int,
) -> torch.Tensor:
    """Compute attention of one token per sequence, at ``position``, over itself and all before."""
    import torch

    if query.is_cuda and has_kernel():
        return _launch_kernel(query, keys, values, position, scale, window)
    at = torch.arange(longest, device=query.device)
    mask = at <= position[:, None]
    if window:
        mask &= at > position[:, None] - window
    return torch.nn.functional.scaled_dot_product_attention(
        query, keys[:, :, :longest], values[:, :, :longest], attn_mask=mask[:, None, None],
        scale=scale, enable_gqa=True,
    )  # fmt: skip


@functools.cache
def has_kernel() -> bool:
    return importlib.util.find_spec("triton") is not None


def _launch_kernel(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    position: torch.Tensor,
    scale: float,
    window: int,
) -> torch.Tensor:
    import torch

    from assay.models.engines.torch.kernel import decode_attention

    rows, heads, _, width = query.shape
    shared = keys.shape[1]
    out = torch.empty((rows, heads, 1, values.shape[-1]), dtype=query.dtype, device=query.device)
    decode_attention[(rows, shared)](
        query, keys, values, out, position, scale, window,
        query.stride(0), query.stride(1), keys.stride(0), keys.stride(1), keys.stride(2),
        values.stride(0), values.stride(1), values.stride(2), out.stride(0), out.stride(1),
        GROUP=heads // shared, ROWS=max(16, power_of_two(heads // shared)),
        KEY=width, KEY_PADDED=power_of_two(width),
        VALUE=values.shape[-1], VALUE_PADDED=power_of_two(values.shape[-1]),
        BLOCK=64,
    )  # fmt: skip
    return out


def power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()


def register(state: Any) -> None:
    """Make transformers' models use this attention. ``state`` says what is computed now."""
    from transformers import AttentionInterface

    def attend(
        module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **settings: Any
    ) -> tuple[Any, None]:
        del attention_mask  # transformers passes none to an unknown attention function
        scale = settings.get("scaling") or module.head_dim**-0.5
        window = settings.get("sliding_window") or 0
        for unknown in ("softcap", "s_aux", "position_bias"):
            if settings.get(unknown) is not None:
                raise NotImplementedError(f"attention with {unknown}")
        if state.position is None:
            out = over_prompt(query, key, value, scale, window)
        else:
            out = over_past(query, key, value, state.position, state.longest, scale, window)
        return out.transpose(1, 2), None

    AttentionInterface.register(NAME, attend)
