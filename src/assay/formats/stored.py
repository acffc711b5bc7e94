"""Describe what a model's files say about it, whatever program runs the model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

SIZE = re.compile(r"(?<![a-z0-9])(?<!\d\.)(\d+(?:[._]\d+)?)([KMBT])(?![a-z])", re.IGNORECASE)
UNITS = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
HEADS = ("output.weight", "lm_head.weight")
EMBEDDINGS = ("token_embd.weight", "model.embed_tokens.weight")
# People round sizes: Qwen2.5-7B has 7.6 billion weights. A copy of the embedding of a small model
# adds more: 13 % to Qwen2.5-3B, 18 % to Qwen2.5-1.5B.
ROUNDING, COPY = 0.2, 0.1
# GGUF's numbers of files whose name says more than the encoding of most tensors.
MIXTURES = {
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S",
    17: "Q5_K_M", 21: "Q2_K_S",
}  # fmt: skip


class StoredSize(NamedTuple):
    """The bytes of a tensor in its file, and its number of values."""

    bytes: int
    numbers: int


@dataclass(frozen=True, slots=True)
class StoredModel:
    """The facts about a model that its name is made of. An empty one is not known."""

    parameters: int = 0
    number_format: str = ""  # of most weights
    title: str = ""  # the model's name in the metadata
    size_label: str = ""  # the number of weights in the metadata, such as 1.5B


def parse_size(text: str) -> float:
    """Return the number of weights that a text states as ``1.5B``; 0 if it states none."""
    match = SIZE.search(text)
    return float(match[1].replace("_", ".")) * UNITS[match[2].upper()] if match else 0.0


def count_parameters(
    shapes: Mapping[str, tuple[int, ...]], *, is_tied: bool = False, stated: Iterable[str] = ()
) -> int:
    """Return the number of weights. A head that only repeats the embedding is not counted.

    The model's settings say so (``is_tied``), or texts that state the size. GGUF files of tied
    models can have the head a second time, in another encoding, and no setting for it.
    """
    total = sum(map(math.prod, shapes.values()))
    head, embedding = (
        next((shapes[name] for name in names if name in shapes), ())
        for names in (HEADS, EMBEDDINGS)
    )
    if not head or head != embedding:
        return total
    once = total - math.prod(head)
    size = next(filter(None, map(parse_size, stated)), 0.0)
    repeated = size and total / size - 1 > COPY and abs(once / size - 1) <= ROUNDING
    return once if is_tied or repeated else total


def name_format(weights: Mapping[str, int], file_type: object = None) -> str:
    """Return the encoding of most weights, such as ``Q8_0``, or its mixture, such as ``Q4_K_M``."""
    ((usual, _),) = Counter(weights).most_common(1) or [("", 0)]
    mixture = MIXTURES.get(file_type, "") if isinstance(file_type, int) else ""
    return mixture if usual and mixture.startswith(usual) else usual
