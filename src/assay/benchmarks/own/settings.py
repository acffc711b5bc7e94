"""Check what a user's benchmark says about all of its problems."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from assay.data import codec
from assay.data.arguments import BOUNDS
from assay.data.checked_files import NAME, FileChecker, LocatedMapping, shown
from assay.types import Limits

ENDINGS = (".yaml", ".yml", ".jsonl", ".jsonl.gz")  # of files, so no names end in them
Kind = Literal["code", "instructions"]
# Tests compare these with the sandbox's.
COMPARISONS = ("livecodebench", "tolerant", "exact")
ENVIRONMENTS = ("bigcodebench", "canitedit", "leetcode", "livecodebench")
KEYS = (
    "name", "version", "licence", "description", "prompts", "system", "limits", "comparison",
    "tolerance", "environment", "problems",
)  # fmt: skip
WALL_PER_CPU = 1.25  # a program that computes all the time reaches its CPU limit first


@dataclass(frozen=True, slots=True)
class OwnBenchmarkSettings:
    """The settings of a user's benchmark, without its problems."""

    name: str
    version: str = ""  # none: the beginning of the file's digest
    licence: str = ""
    description: str = ""
    prompts: Kind | None = None  # none: each prompt is code if it can be parsed
    system: str = ""
    limits: Limits = field(default_factory=Limits)
    comparison: str = "livecodebench"
    tolerance: float = 0.0
    environment: str = ""


def check_settings(
    checker: FileChecker, entry: LocatedMapping, stem: str, taken: Collection[str]
) -> OwnBenchmarkSettings:
    """Return the settings of a file. ``taken`` are names that other benchmarks have."""
    values = entry.values
    name = values.get("name", stem)
    place = (*entry.place, "name")
    if not isinstance(name, str) or not NAME.fullmatch(name) or name.endswith(ENDINGS):
        advice = "Use letters, digits, '.', '_', '-'; without a name, the file's is used."
        checker.add(place, f"name: {shown(name)} is not a name. {advice}")
        name = "own"
    elif name in taken:
        advice = "Give another, so that results are not confused."
        checker.add(place, f"name: '{name}' is the name of a built-in benchmark. {advice}")
    texts = {
        key: _read_text(checker, entry, key)
        for key in ("version", "licence", "description", "system")
    }
    return OwnBenchmarkSettings(
        name=name,
        prompts=_read_choice(checker, entry, "prompts", get_args(Kind)),
        limits=_read_limits(checker, entry),
        comparison=_read_choice(checker, entry, "comparison", COMPARISONS) or "livecodebench",
        tolerance=_read_tolerance(checker, entry),
        environment=_read_choice(checker, entry, "environment", ENVIRONMENTS) or "",
        **texts,
    )


def _read_text(checker: FileChecker, entry: LocatedMapping, key: str) -> str:
    value = entry.values.get(key, "")
    if key == "version" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return checker.text((*entry.place, key), value)
    checker.add((*entry.place, key), f"{key}: {shown(value)} is not text. Write it in quotes.")
    return ""


def _read_choice(
    checker: FileChecker, entry: LocatedMapping, key: str, choices: tuple[str, ...]
) -> Any:
    value = entry.values.get(key)
    if value is None or value in choices:
        return value
    advice = f"Choose {', '.join(choices)}."
    checker.add((*entry.place, key), f"{key}: {shown(value)} is unknown. {advice}")
    return None


def _read_tolerance(checker: FileChecker, entry: LocatedMapping) -> float:
    value = entry.values.get("tolerance", 0)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1:
        return float(value)
    mistake = f"tolerance: {shown(value)} is not a number from 0 to 1. Give one such as 1e-6."
    checker.add((*entry.place, "tolerance"), mistake)
    return 0.0


def _read_limits(checker: FileChecker, entry: LocatedMapping) -> Limits:
    given = entry.values.get("limits", {})
    part = checker.entry((*entry.place, "limits"), given, BOUNDS)
    found: dict[str, Any] = {}
    for name, (least, most) in BOUNDS.items():
        if name not in part.values:
            continue
        value = part.values[name]
        try:
            codec.from_json(Limits, {name: value})
            valid = least <= value <= most
        except ValueError:
            valid = False
        if valid:
            found[name] = value
        else:
            advice = f"Give a number from {least} to {most}."
            checker.add((*part.place, name), f"{name}: {shown(value)} is not valid. {advice}")
    limits = codec.from_json(Limits, found)
    if "wall_s" in found:
        return limits
    return dataclasses.replace(limits, wall_s=max(limits.wall_s, WALL_PER_CPU * limits.cpu_s))
