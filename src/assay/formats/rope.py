"""Convert the scaling of rotary embeddings for long texts between GGUF and Hugging Face."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.data import codec
from assay.errors import ModelError
from assay.formats.gguf.file import STRING, GgufPair

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.formats.gguf.file import GgufValue

FREQUENCIES = "rope_freqs.weight"  # GGUF's tensor: the divisor of each frequency
UINT32, FLOAT32 = 4, 6


LLAMA3_KEYS = (
    "factor",
    "low_freq_factor",
    "high_freq_factor",
    "original_max_position_embeddings",
)


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """``rope_scaling`` of a config.json, with its names. None means absent."""

    rope_type: str
    factor: float | None = None
    low_freq_factor: float | None = None
    high_freq_factor: float | None = None
    original_max_position_embeddings: float | None = None

    def to_json(self) -> dict[str, str | float]:
        return {name: value for name, value in codec.to_json(self).items() if value is not None}


# The values of Llama 3.1 and 3.2. GGUF only stores what is computed from them.
LLAMA3 = tuple(RopeScaling("llama3", factor, 1.0, 4.0, 8192) for factor in (8.0, 32.0))


def parse_scaling(settings: Any) -> RopeScaling | None:
    """Parse a config.json's old or new keys. Return None if nothing is scaled."""
    kind = settings.get("rope_type", settings.get("type", "default"))
    if kind == "default":
        return None
    return RopeScaling(str(kind), *(_number(settings.get(key)) for key in LLAMA3_KEYS))


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) else None


def scaling_from_gguf(
    metadata: Mapping[str, GgufValue],
    prefix: str,
    divisors: Sequence[float],
    base: float,
    where: str,
) -> RopeScaling | None:
    """Return the scaling. ``divisors`` are the file's frequencies tensor, empty if it has none."""
    if any(abs(divisor - 1) > 1e-6 for divisor in divisors):
        for scaling in LLAMA3:
            ours = llama3_divisors(base, 2 * len(divisors), scaling)
            if all(math.isclose(a, b, rel_tol=1e-4) for a, b in zip(ours, divisors, strict=True)):
                return scaling
        raise ModelError(
            f"{where}: scales its rotary embedding in an unknown way. Run the GGUF "
            "file with llama.cpp."
        )
    kind = metadata.get(f"{prefix}.rope.scaling.type", "none")
    if kind == "none":
        return None
    if not isinstance(kind, str) or kind not in ("linear", "yarn"):
        raise ModelError(
            f"{where}: scales its rotary embedding by '{kind}', which is not known here. Run the "
            "GGUF file with llama.cpp."
        )
    original = metadata.get(f"{prefix}.rope.scaling.original_context_length")
    return RopeScaling(
        kind,
        factor=_number(metadata.get(f"{prefix}.rope.scaling.factor", 1.0)),
        original_max_position_embeddings=_number(original) or None if kind == "yarn" else None,
    )


def gguf_scaling(scaling: RopeScaling | None, prefix: str, where: str) -> list[GgufPair]:
    """Return GGUF's metadata for the scaling. That of Llama 3 is a tensor instead."""
    if scaling is None or scaling.rope_type == "llama3":
        return []
    if scaling.rope_type not in ("linear", "yarn"):
        raise ModelError(
            f"{where}: scales its rotary embedding by '{scaling.rope_type}', which a GGUF "
            "file cannot store. Keep the model in its format."
        )
    if scaling.factor is None:
        raise ModelError(f"{where}: its rope_scaling has no factor. Download it again.")
    key = f"{prefix}.rope.scaling"
    pairs = [
        GgufPair(f"{key}.type", STRING, scaling.rope_type),
        GgufPair(f"{key}.factor", FLOAT32, float(scaling.factor)),
    ]
    if original := scaling.original_max_position_embeddings:
        pairs.append(GgufPair(f"{key}.original_context_length", UINT32, int(original)))
    return pairs


def llama3_divisors(base: float, size: int, scaling: RopeScaling) -> list[float]:
    """Return the divisor of each frequency of a head in Llama 3: ``factor`` for the slow ones."""
    factor, original = scaling.factor, scaling.original_max_position_embeddings
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    if factor is None or low is None or high is None or original is None:
        raise ModelError(
            f"rope_scaling: llama3 needs the numbers {', '.join(LLAMA3_KEYS)}. Fix config.json."
        )

    def divisor(number: int) -> float:
        length = 2 * math.pi * math.pow(base, 2 * number / size)
        if length < original / high:
            return 1.0
        if length > original / low:
            return factor
        smooth = (original / length - low) / (high - low)
        return 1 / ((1 - smooth) / factor + smooth)

    return [divisor(number) for number in range(size // 2)]
