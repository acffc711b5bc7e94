"""All runs of a results folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from assay.errors import RunError
from assay.runs._files import read_json
from assay.runs.folder import run_folders
from assay.runs.results import RESULTS_VERSION

NEEDED = (
    "schema", "benchmark", "model", "timestamp", "run", "results.invalid", "problems.task_id",
    "problems.n", "problems.passed", "protocol.hash", "protocol.prompt_strategy",
    "protocol.n_samples",
)  # fmt: skip
RESULT_NAME = re.compile(r".+_\d{8}_\d{6}(-\d+)?\.json")


def list_runs(results_dir: Path) -> list[dict[str, Any]]:
    """The results of all runs, newest first; an unfinished run has no ``results``."""
    finished = {
        path.stem: read_result(path)
        for path in results_dir.glob("*.json")
        if RESULT_NAME.fullmatch(path.name)
    }
    unfinished = [
        _unfinished(path, about)
        for path, about in run_folders(results_dir)
        if path.name not in finished
    ]
    every = [*finished.values(), *unfinished]
    return sorted(every, key=lambda run: str(run["timestamp"]), reverse=True)


def _unfinished(path: Path, about: dict[str, Any]) -> dict[str, Any]:
    protocol = read_json(path / "protocol.json")
    return {
        "run": path.name,
        "benchmark": protocol["benchmark"],
        "model": about["model"]["name"],
        "timestamp": about["created"],
        "protocol": protocol,
    }


def find_result(reference: str, results_dir: Path) -> dict[str, Any]:
    """A result by file, by run folder, or by its name in ``results_dir``."""
    path = Path(reference).absolute()
    candidates = [path, path.with_name(f"{path.name}.json"), results_dir / f"{reference}.json"]
    for candidate in candidates:
        if candidate.is_file():
            return read_result(candidate)
    raise RunError(f"no result '{reference}': give a results file, or a run that history lists")


def read_result(path: Path) -> dict[str, Any]:
    result = read_json(path)
    if not isinstance(result, dict) or any(not _has(result, name) for name in NEEDED):
        raise RunError(f"{path} is not a results file of assay")
    if result["schema"] != RESULTS_VERSION:
        raise RunError(f"{path} has schema {result['schema']}, not {RESULTS_VERSION}: update assay")
    return result


def _has(result: dict[str, Any], name: str) -> bool:
    """Whether a dotted field is there; of a list, whether all its items have it."""
    first, _, rest = name.partition(".")
    if not isinstance(result, dict) or first not in result:
        return False
    inner = result[first]
    return not rest or all(_has(i, rest) for i in (inner if isinstance(inner, list) else [inner]))
