"""Check the fields of a results file and their types before it is used."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, get_args

from assay.types import PromptImports

MOST_PROBLEMS = 100_000
RUN_NAME = re.compile(r"(?!\.)[\w.+-]{1,200}", re.ASCII)  # the name of a folder, never a path

Check = Callable[[Any], bool]
Shape = dict[str, "Check | Shape"]
OPTIONAL = "?"  # at the end of a field's name: it may be missing or null


def is_count(value: Any) -> bool:
    """Return whether this is a whole number of 0 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_share(value: Any) -> bool:
    """Return whether this is a number between 0 and 1."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and 0 <= round(value, 9) <= 1


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_run(value: Any) -> bool:
    return isinstance(value, str) and RUN_NAME.fullmatch(value) is not None


def _are_results(results: Any) -> bool:
    return (
        wrong_field(results, {"invalid": is_count, "groups?": _is_object}) == ""
        and _are_scores(results)
        and _are_scores(results.get("left_out_as_failed", {}))
    )


def _are_scores(results: Any) -> bool:
    """Return whether every pass@k is a number or None, and every interval has two ends."""
    if not isinstance(results, dict):
        return False
    scores = [value for name, value in results.items() if name.startswith("pass_at_")]
    intervals = results.get("intervals", {})
    return (
        all(score is None or is_share(score) for score in scores)
        and isinstance(intervals, dict)
        and all(wrong_field(found, INTERVAL) == "" for found in intervals.values())
    )


def _are_problems(problems: Any) -> bool:
    return (
        isinstance(problems, list)
        and len(problems) <= MOST_PROBLEMS
        and all(wrong_field(one, PROBLEM) == "" and one["passed"] <= one["n"] for one in problems)
    )


INTERVAL: Shape = {"low": is_share, "high": is_share}
PROBLEM: Shape = {
    "task_id": _is_text, "n": is_count, "passed": is_count, "cluster?": _is_text,
}  # fmt: skip
PROTOCOL: Shape = {
    "benchmark": _is_text, "hash": _is_text, "prompt_strategy": _is_text, "n_samples": is_count,
    "prompt_imports?": lambda value: value in get_args(PromptImports), "judge?": _is_text,
}  # fmt: skip
COVERAGE: Shape = {
    "benchmark_problems": is_count, "selected_problems": is_count, "judged_problems": is_count,
    "samples": is_count, "judged_samples": is_count, "complete": _is_flag,
    "unscorable_problems?": is_count,
}  # fmt: skip
# The checks that ``assay score`` can run in addition to the score.
CHECKS: dict[str, Check] = {"flaky": _is_object, "extraction": _is_list, "cross_check": _is_object}
RESULT: Shape = {
    "schema": is_count,
    "benchmark": _is_text,
    "model": _is_text,
    "timestamp": _is_text,
    "run": _is_run,
    "results": _are_results,
    "problems": _are_problems,
    "protocol": PROTOCOL,
    "config?": {},
    "coverage?": COVERAGE,
    "sequential?": {},
    "model_identity?": {
        "prompt_form": lambda value: value in ("chat", "text"),
        "weights_sha256": _is_text,
    },
    **{f"{name}?": check for name, check in CHECKS.items()},
}


def wrong_field(value: Any, shape: Shape) -> str:
    """Return the dotted name of the first missing or mistyped field, or an empty text."""
    if not isinstance(value, dict):
        return "the object"
    for field, check in shape.items():
        name = field.removesuffix(OPTIONAL)
        found = value.get(name)
        if found is None and field != name:
            continue
        if isinstance(check, dict):
            if inner := wrong_field(found, check):
                return f"{name}.{inner}"
        elif found is None or not check(found):
            return name
    return ""
