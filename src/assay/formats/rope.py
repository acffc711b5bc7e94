"""How the rotary embedding is stretched for long texts: GGUF's words and Hugging Face's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from assay.errors import ModelError
from assay.formats.gguf.file import STRING, GgufPair

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FREQUENCIES = "rope_freqs.weight"  # GGUF's tensor: what each frequency is divided by
UINT32, FLOAT32 = 4, 6
LLAMA3_KEYS = (
    "factor",
    "low_freq_factor",
    "high_freq_factor",
    "original_max_position_embeddings",
)
# Of Llama 3.1 and 3.2: GGUF keeps only what comes out of them.
LLAMA3 = [
    {"rope_type": "llama3", **dict(zip(LLAMA3_KEYS, (factor, 1.0, 4.0, 8192), strict=True))}
    for factor in (8.0, 32.0)
]


def base_and_scaling(config: Mapping[str, Any]) -> tuple[float, dict[str, Any] | None]:
    """``rope_theta``, and ``rope_scaling`` if there is any, of an old or a new config.json."""
    parameters = config.get("rope_parameters") or {}
    base = parameters.get("rope_theta") or config.get("rope_theta") or 10000.0
    scaling = dict(config.get("rope_scaling") or parameters)
    kind = scaling.setdefault("rope_type", scaling.get("type", "default"))
    return float(base), None if kind == "default" else scaling


def scaling_from_gguf(
    metadata: Mapping[str, Any],
    prefix: str,
    divisors: Sequence[float],
    config: Mapping[str, Any],
    where: str,
) -> dict[str, Any] | None:
    """``divisors`` are the file's frequencies tensor, empty where it has none."""
    if any(abs(divisor - 1) > 1e-6 for divisor in divisors):
        for scaling in LLAMA3:
            ours = llama3_divisors(config["rope_theta"], 2 * len(divisors), scaling)
            if all(math.isclose(a, b, rel_tol=1e-4) for a, b in zip(ours, divisors, strict=True)):
                return scaling
        raise ModelError(
            f"{where} stretches its rotary embedding in a way that is not known here: run the GGUF "
            "file with llama.cpp"
        )
    kind = metadata.get(f"{prefix}.rope.scaling.type", "none")
    if kind == "none":
        return None
    if kind not in ("linear", "yarn"):
        raise ModelError(
            f"{where} stretches its rotary embedding by '{kind}', which is not known here: run the "
            "GGUF file with llama.cpp"
        )
    scaling = {"rope_type": kind, "factor": metadata.get(f"{prefix}.rope.scaling.factor", 1.0)}
    original = metadata.get(f"{prefix}.rope.scaling.original_context_length")
    if kind == "yarn" and original:
        scaling["original_max_position_embeddings"] = original
    return scaling


def gguf_scaling(config: Mapping[str, Any], prefix: str, where: str) -> list[GgufPair]:
    """GGUF's metadata for it; that of Llama 3 is a tensor instead."""
    _, scaling = base_and_scaling(config)
    if scaling is None or scaling["rope_type"] == "llama3":
        return []
    if scaling["rope_type"] not in ("linear", "yarn"):
        raise ModelError(
            f"{where} stretches its rotary embedding by '{scaling['rope_type']}', which a GGUF "
            "file cannot say: keep the model in the format it has"
        )
    key = f"{prefix}.rope.scaling"
    pairs = [
        GgufPair(f"{key}.type", STRING, scaling["rope_type"]),
        GgufPair(f"{key}.factor", FLOAT32, float(scaling["factor"])),
    ]
    if original := scaling.get("original_max_position_embeddings"):
        pairs.append(GgufPair(f"{key}.original_context_length", UINT32, int(original)))
    return pairs


def llama3_divisors(base: float, size: int, scaling: Mapping[str, Any]) -> list[float]:
    """What Llama 3 divides each frequency of a head by: the slow ones by all of ``factor``."""
    try:
        factor, low, high, original = (float(scaling[key]) for key in LLAMA3_KEYS)
    except (LookupError, TypeError, ValueError) as error:
        raise ModelError(
            f"rope_scaling of llama3 needs the numbers {', '.join(LLAMA3_KEYS)}: mend config.json"
        ) from error

    def divisor(number: int) -> float:
        length = 2 * math.pi * math.pow(base, 2 * number / size)
        if length < original / high:
            return 1.0
        if length > original / low:
            return factor
        smooth = (original / length - low) / (high - low)
        return 1 / ((1 - smooth) / factor + smooth)

    return [divisor(number) for number in range(size // 2)]
