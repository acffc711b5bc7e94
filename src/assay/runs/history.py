"""All runs of a results folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from assay.errors import RunError
from assay.runs._files import read_json
from assay.runs.folder import run_folders

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
    path = Path(reference)
    candidates = [path, path.with_name(f"{path.name}.json"), results_dir / f"{reference}.json"]
    for candidate in candidates:
        if candidate.is_file():
            return read_result(candidate)
    raise RunError(f"no result '{reference}': give a results file, or a run that history lists")


def read_result(path: Path) -> dict[str, Any]:
    result = read_json(path)
    needed = {"benchmark", "model", "timestamp", "results", "problems", "protocol"}
    if not isinstance(result, dict) or needed - result.keys():
        raise RunError(f"{path} is not a results file of assay")
    return result
