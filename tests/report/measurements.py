"""Files of measurements as the commands write them, for tests of pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.data import codec

MODEL = {
    "name": "model-a", "engine": "gguf", "weights_sha256": "ab" * 32, "prompt_form": "chat",
    "tokenizer_sha256": "", "template_sha256": "", "variant": "", "path": "/models/model-a.gguf",
}  # fmt: skip
SPREAD = {"median": 40.0, "min": 38.0, "max": 44.0, "q1": 39.0, "q3": 42.0}


def _batch(sequences: int) -> dict[str, Any]:
    faster = {name: value * sequences**0.5 for name, value in SPREAD.items()}
    return {
        "sequences": sequences, "tokens_per_second": faster, "seconds": SPREAD,
        "tokens_generated": 100, "ended_early": 0,
    }  # fmt: skip


DOCUMENTS: dict[str, dict[str, Any]] = {
    "perplexity": {
        "model": MODEL,
        "dataset": {"name": "wikitext-2", "sha256": "cd" * 32, "bytes": 65536},
        "results": {
            "cross_entropy": 3.1, "perplexity": 22.2, "bits_per_byte": 0.98, "standard_error": 0.02,
            "low": 21.3, "high": 23.1, "tokens": 16000, "bytes": 65536, "window": 1024,
            "stride": 512,
        },
        "engine": {"name": "gguf"}, "used_gpu": False, "seconds": 12.5,
    },
    "bench": {
        "schema": 1, "model": "model-a", "timestamp": "2026-11-17T06:00:00+00:00",
        "tokens_per_second": 40.0, "time_to_first_token_ms": 120.0,
        "prefill_tokens_per_second": 300.0, "load_s": 1.5, "used_gpu": False,
        "peak_memory_mb": 400.0, "gpu_peak_memory_mb": None,
        "figures": {
            "time_to_first_token_ms": SPREAD, "prefill_tokens_per_second": SPREAD,
            "decode_tokens_per_second": SPREAD, "batches": [_batch(n) for n in (1, 2, 4, 8)],
        },
        "rounds": [], "settings": {"prompt_tokens": 128, "new_tokens": 128},
        "loading": {}, "model_identity": MODEL, "engine": {},
        "machine": {"platform": "Linux", "cpus": 2},
    },
    "parity": {
        "model": MODEL, "reference": {**MODEL, "name": "original", "engine": "hf"},
        "precision": "4-bit", "prompts": 8, "token_differences": [],
        "agreement": {
            "positions": 400, "cosine_mean": 0.9991, "cosine_min": 0.98,
            "max_abs_difference": 3.2, "top1_agreement": 0.97, "kl_mean": 0.01, "kl_max": 0.4,
        },
        "kl_by_position": [0.001 * (1 + position % 7) for position in range(60)],
        "divergence": {"same": 5, "of": 8, "positions": [None, 3, 9]},
        "candidate_perplexity": 22.2, "reference_perplexity": 21.9, "perplexity_gap": 0.0137,
        "findings": [
            {"name": "mean cosine of logits", "value": 0.9991, "bound": 0.99, "decision": "GO"},
            {"name": "same most likely token", "value": 0.97, "bound": 0.98, "decision": "NO-GO"},
        ],
        "decision": "NO-GO",
    },
    "check": {
        "model": "model-a.gguf", "sound": False,
        "stages": [
            {"name": "container", "status": "pass", "reason": "GGUF, 98.4 MB"},
            {"name": "values", "status": "fail", "reason": "3 weights are NaN"},
            {"name": "forward", "status": "skipped", "reason": "a stage before it failed"},
        ],
    },
    "qa": {
        "decision": "INCONCLUSIVE", "tier": "release", "model": MODEL,
        "items": [
            {"name": "check", "decision": "GO", "reason": "10 stages pass", "figures": {"n": 10}},
            {"name": "scores", "decision": "INCONCLUSIVE", "reason": "no run", "figures": {}},
        ],
        "sha256": {"policy": "ef" * 32}, "timestamp": "2026-11-17T06:00:00+00:00",
        "assay": "0.1.0", "platform": "Linux", "python": "3.11.2",
    },
}  # fmt: skip


def write_measurements(folder: Path) -> None:
    """Write one file of every kind."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, document in DOCUMENTS.items():
        (folder / f"{kind}.json").write_text(codec.pretty(document))
