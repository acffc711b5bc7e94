"""Choose tokens on the device: greedy, or sampled with each sequence's own seed.

The noise of a token is a hash of (seed, number of tokens before it, token). So a sample does not
depend on the batch or on the order, as long as the logits do not.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch

from assay.models.engines.torch.fused import log_sum_exp

# splitmix64's multipliers as signed numbers, and odd numbers that spread the parts of the key.
MIX = (-4658895280553007687, -7723592293110705685)
SPREAD = (-7046029254386353131, 3935559000370003845, 2691343689449507681)


@dataclass(frozen=True, slots=True)
class SamplingFeatures:
    """Features that a step must have for all its sequences. Their settings are data."""

    width: int  # candidates: 1 is greedy, 0 the whole vocabulary
    nucleus: bool = False  # whether any has top_p below 1
    floor: bool = False  # whether any has min_p above 0
    penalty: bool = False  # whether any has a repetition penalty: tokens seen must be known


@dataclass(slots=True)
class SamplingSettings:
    """Settings of every slot, on the device."""

    temperature: torch.Tensor
    top_k: torch.Tensor
    top_p: torch.Tensor
    seed: torch.Tensor
    min_p: torch.Tensor
    repetition_penalty: torch.Tensor

    def of(self, rows: slice) -> SamplingSettings:
        return SamplingSettings(*(state[rows] for state in self.by_name().values()))

    def by_name(self) -> dict[str, torch.Tensor]:
        """Return the settings by their names, which are those of ``Decoding``."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def choose(
    logits: torch.Tensor,
    made: torch.Tensor,
    settings: SamplingSettings,
    choice: SamplingFeatures,
    seen: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return tokens and their log-probabilities under the model (not under the cut distribution).

    ``seen`` marks the tokens of each sequence so far, for the repetition penalty.
    """
    changed = logits if seen is None else penalise(logits, seen, settings.repetition_penalty)
    token = _choose(changed, made, settings, choice)
    return token, logits.gather(1, token[:, None])[:, 0].float() - log_sum_exp(logits)


def penalise(logits: torch.Tensor, seen: torch.Tensor, penalty: torch.Tensor) -> torch.Tensor:
    """Return logits with those of seen tokens reduced, as transformers does."""
    by = penalty[:, None].to(logits.dtype)
    return torch.where(seen, torch.where(logits > 0, logits / by, logits * by), logits)


def _choose(
    logits: torch.Tensor, made: torch.Tensor, settings: SamplingSettings, choice: SamplingFeatures
) -> torch.Tensor:
    """Return a token for every row."""
    if choice.width == 1:
        return logits.max(dim=-1).indices
    if choice.width or choice.nucleus:
        values, tokens = torch.topk(logits, choice.width or logits.shape[-1], dim=-1)
    else:
        values = logits
        tokens = torch.arange(logits.shape[-1], device=logits.device).expand_as(logits)
    values = values.float()
    greedy = settings.temperature == 0
    scaled = values / torch.where(greedy, 1.0, settings.temperature)[:, None]
    if choice.width:
        rank = torch.arange(choice.width, device=logits.device)
        cut = (settings.top_k > 0)[:, None] & (rank[None] >= settings.top_k[:, None])
        scaled = scaled.masked_fill(cut, float("-inf"))
    if choice.nucleus:
        likely = torch.softmax(scaled, dim=-1)
        before = likely.cumsum(dim=-1) - likely
        scaled = scaled.masked_fill(before >= settings.top_p[:, None], float("-inf"))
    if choice.floor:
        least = scaled.amax(dim=-1, keepdim=True) + settings.min_p.log()[:, None]
        scaled = scaled.masked_fill(scaled < least, float("-inf"))
    noisy = scaled + gumbel(settings.seed[:, None], made[:, None], tokens)
    picked = torch.where(greedy, values.argmax(dim=-1), noisy.argmax(dim=-1))[:, None]
    return tokens.gather(1, picked)[:, 0]


def gumbel(seed: Any, made: Any, token: torch.Tensor) -> torch.Tensor:
    """Return standard Gumbel noise. The largest of logit + noise is a sample of the softmax."""
    key = seed * SPREAD[0] + made * SPREAD[1] + token * SPREAD[2]
    for shift, factor in zip((30, 27), MIX, strict=True):
        key = (key ^ _shift_right(key, shift)) * factor
    key = key ^ _shift_right(key, 31)
    uniform = (_shift_right(key, 40).to(torch.float32) + 0.5) * 2.0**-24
    return -torch.log(-torch.log(uniform))


def _shift_right(key: torch.Tensor, by: int) -> torch.Tensor:
    """Shift to the right, filling with zeros: torch's own shift keeps the sign."""
    return (key >> by) & ((1 << (64 - by)) - 1)
