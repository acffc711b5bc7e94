"""Compute attention and other operations of transformers' models, on a GPU by Triton kernels.

Attention is that of the slots: one new token of every sequence over its own past. On a GPU, a
kernel reads only what a sequence has, and reads keys once for all the heads that share them.
Elsewhere torch's own attention is used with a mask.

Small operations are replaced by one kernel each. A norm is seven kernels in transformers and a
rotation ten, and a step of a small model is as long as the number of its kernels. The replacements
round where transformers does. Each is tried on random numbers first, and is used only where the
results are equal.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable


NAME = "assay_slots"
ROTATE = "apply_rotary_pos_emb"
ROWS = 8  # of random numbers


def over_prompt(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, window: int
) -> torch.Tensor:
    """Compute causal attention inside prompts, padded to the right."""
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


def fuse(model: Any) -> None:
    """Replace what can be replaced in a model on a GPU."""
    if model.device.type != "cuda" or not has_kernel():
        return
    modules = list(model.modules())
    for kind in {type(module) for module in modules if type(module).__name__.endswith("RMSNorm")}:
        of_kind = [module for module in modules if type(module) is kind]
        if all(map(_norm_is_equal, of_kind)):
            for module in of_kind:
                module.forward = _norm_of(module)
    for source in {type(module).__module__ for module in modules}:
        code = sys.modules[source]
        if hasattr(code, ROTATE) and _rotation_is_equal(getattr(code, ROTATE), model.dtype):
            setattr(code, ROTATE, _rotation(getattr(code, ROTATE)))


def log_sum_exp(logits: torch.Tensor) -> torch.Tensor:
    """Return each row's in float32, without a copy of the logits in that format on a GPU."""
    if not (logits.is_cuda and has_kernel() and logits.stride(-1) == 1):
        return torch.logsumexp(logits.float(), dim=-1)
    from assay.models.engines.torch import kernel

    rows, width = logits.shape
    out = torch.empty(rows, dtype=torch.float32, device=logits.device)
    kernel.log_sum_exp[(rows,)](logits, out, logits.stride(0), width, BLOCK=4096)
    return out


def _norm_of(module: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    weight, eps = module.weight, float(module.variance_epsilon)

    def forward(x: torch.Tensor) -> torch.Tensor:
        from assay.models.engines.torch.kernel import rms_norm

        x = x.contiguous()
        out = torch.empty_like(x)
        width = x.shape[-1]
        rms_norm[(x.numel() // width,)](
            x, weight, out, eps, WIDTH=width, PADDED=power_of_two(width)
        )
        return out

    return forward


def _norm_is_equal(module: Any) -> bool:
    weight = getattr(module, "weight", None)
    if weight is None or weight.dim() != 1 or not hasattr(module, "variance_epsilon"):
        return False
    if weight.dtype == torch.float32:  # the order of its sum shows in the last bit of the result
        return False
    x = _random(ROWS, weight.shape[0], dtype=weight.dtype)
    return _equal(_norm_of(module)(x), module(x))


def _rotation(original: Callable[..., Any]) -> Callable[..., Any]:
    def rotate_both(
        q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, *more: Any,
        **settings: Any,
    ) -> Any:  # fmt: skip
        usual = not more and settings.get("unsqueeze_dim", 1) == 1 and cos.dim() == 3
        if not (usual and q.is_cuda and cos.shape[-1] == q.shape[-1] and cos.dtype == q.dtype):
            return original(q, k, cos, sin, *more, **settings)
        return _rotate(q, cos, sin), _rotate(k, cos, sin)

    return rotate_both


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    from assay.models.engines.torch.kernel import rotate

    if x.stride(-1) != 1:
        x = x.contiguous()
    rows, heads, tokens, width = x.shape
    cos, sin = (angle.contiguous().expand(rows, -1, -1) for angle in (cos, sin))
    out = torch.empty_like(x)
    rotate[(rows * tokens, heads)](
        x, cos, sin, out, tokens, x.stride(0), x.stride(1), x.stride(2),
        cos.stride(0), cos.stride(1), out.stride(0), out.stride(1), out.stride(2),
        HALF=width // 2, PADDED=power_of_two(width // 2),
        enable_fp_fusion=False,  # a fused multiply-add would round once instead of three times
    )  # fmt: skip
    return out


def _rotation_is_equal(original: Callable[..., Any], dtype: torch.dtype) -> bool:
    q, k = (_random(2, heads, 3, 64, dtype=dtype) for heads in (4, 2))
    angle = _random(2, 3, 64, dtype=dtype)
    cos, sin = angle.cos(), angle.sin()
    try:
        wanted = original(q, k, cos, sin)
    except TypeError:
        return False
    ours = _rotation(original)(q, k, cos, sin)
    return all(_equal(one, other) for one, other in zip(ours, wanted, strict=True))


def _random(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    """Return the same numbers every time, or the same model would be fused in one run only."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to("cuda", dtype)


def _equal(ours: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Return whether at most one number in a hundred is rounded the other way."""
    if ours.shape != wanted.shape or ours.dtype != wanted.dtype:
        return False
    differs = ours != wanted
    close = torch.isclose(ours, wanted, rtol=2 * torch.finfo(wanted.dtype).eps, atol=0)
    return bool(close.all()) and float(differs.float().mean()) <= 0.01
