"""Check and apply llama.cpp's own settings, which users choose with --engine-option."""

from __future__ import annotations

import enum
import os
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError
from assay.models.options import NamedValue, by_name, refuse_reserved

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Attributes of xllamacpp's CommonParams. Each changes how a model is loaded or computes, and no
# other option sets it.
LOADING = (
    "cache_type_k", "cache_type_v", "flash_attn_type", "kv_unified", "main_gpu", "n_batch",
    "n_ubatch", "no_extra_bufts", "no_host", "no_kv_offload", "no_op_offload", "numa",
    "rope_freq_base", "rope_freq_scale", "rope_scaling_type", "split_mode", "swa_full",
    "yarn_attn_factor", "yarn_beta_fast", "yarn_beta_slow", "yarn_ext_factor", "yarn_orig_ctx",
)  # fmt: skip
SAMPLING = tuple(
    f"sampling.{name}"
    for name in (
        "adaptive_decay", "adaptive_target", "dry_allowed_length", "dry_base", "dry_multiplier",
        "dry_penalty_last_n", "dynatemp_exponent", "dynatemp_range", "min_keep", "mirostat",
        "mirostat_eta", "mirostat_tau", "penalty_freq", "penalty_last_n",
        "penalty_present", "typ_p", "xtc_probability", "xtc_threshold",
    )
)  # fmt: skip
KNOWN = frozenset(LOADING + SAMPLING)
RESERVED = {
    "model": "--model",
    "n_parallel": "--parallel",
    "n_ctx": "--max-tokens",
    "n_gpu_layers": "--device",
    "cpuparams.n_threads": "--threads",
    "cpuparams_batch.n_threads": "--threads",
    "sampling.temp": "--temperature",
    "sampling.top_k": "--top-k",
    "sampling.top_p": "--top-p",
    "sampling.min_p": "--min-p",
    "sampling.penalty_repeat": "--repetition-penalty",
    "sampling.seed": "--seed",
    "sampling.reasoning_budget_tokens": "--thinking",
    "enable_reasoning": "--thinking",
    "n_predict": "--max-tokens",
    "antiprompt": "--stop",
    "system_prompt": "--system",
}
KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def check_option_names(options: Iterable[NamedValue]) -> None:
    """Raise UsageError for a name that is not an option of llama.cpp here."""
    for option in options:
        refuse_reserved([option], RESERVED)
        if option.name not in KNOWN:
            raise UsageError(
                f"--engine-option {option.name}: is not a setting of llama.cpp that assay can "
                f"change. Use one of chat_template_kwargs, {', '.join(sorted(KNOWN))}."
            )


def apply_options(params: Any, options: Sequence[NamedValue]) -> None:
    """Set attributes of CommonParams. Raise ValueError if a value does not fit."""
    for name, value in by_name(options).items():
        *outer, last = name.split(".")
        target = params
        for part in outer:
            target = getattr(target, part)
        if not hasattr(target, last):
            raise ValueError(
                f"--engine-option {name}: this version of llama.cpp has no such setting. Drop it."
            )
        setattr(target, last, _fitting(name, getattr(target, last), value))


def _fitting(name: str, current: Any, value: Any) -> Any:
    """Return the value in the type of the current one."""
    if isinstance(current, enum.Enum):
        return _member(name, type(current), value)
    kind = type(current)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise ValueError(f"--engine-option {name}: is not {KINDS[kind]}. Give another value.")
    return value


def _member(name: str, kind: type[enum.Enum], value: Any) -> enum.Enum:
    """Return the member of an enumeration by its short name, such as q8_0."""
    names = [member.name for member in kind]
    shared = len(os.path.commonprefix(names))  # noqa: RUF071 - of names
    members = {full[shared:].lower(): kind[full] for full in names}
    if not isinstance(value, str) or value.lower() not in members:
        raise ValueError(
            f"--engine-option {name}: is not one of its values. Use one of {', '.join(members)}."
        )
    return members[value.lower()]
