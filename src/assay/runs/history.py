"""All runs of a results folder."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from assay.errors import RunError
from assay.runs._files import DOCUMENTS
from assay.runs._shapes import PROTOCOL, RESULT, wrong_field
from assay.runs.folder import run_folders
from assay.runs.results import RESULTS_VERSION

PROTOCOL_FILE = "protocol.json"
RESULT_NAME = re.compile(r".+_\d{8}_\d{6}(-\d+)?\.json")


def list_runs(
    results_dir: Path, warn: Callable[[str], None] = lambda _: None
) -> list[dict[str, Any]]:
    """Return the results of all runs, newest first; an unfinished run has no ``results``.

    ``warn`` gets one line for every file that cannot be read; the others are listed.
    """
    found: dict[str, dict[str, Any]] = {}
    for path in results_dir.glob("*.json"):
        if RESULT_NAME.fullmatch(path.name):
            with _warning(warn):
                found[path.stem] = read_result(path, follow=False)
    for folder, about in run_folders(results_dir, warn):
        if not folder.with_name(f"{folder.name}.json").exists():
            with _warning(warn):
                found[folder.name] = _unfinished(folder, about)
    return sorted(found.values(), key=lambda run: run["timestamp"], reverse=True)


@contextlib.contextmanager
def _warning(warn: Callable[[str], None]) -> Iterator[None]:
    try:
        yield
    except RunError as error:
        warn(str(error))


def _unfinished(path: Path, about: dict[str, Any]) -> dict[str, Any]:
    protocol = DOCUMENTS.read_json(path / PROTOCOL_FILE)
    if wrong := wrong_field(protocol, PROTOCOL):
        raise RunError(
            f"{path / PROTOCOL_FILE}: {wrong} is missing or of another type. "
            "Restore it from a copy, or delete the run."
        )
    return {
        "run": path.name,
        "benchmark": protocol["benchmark"],
        "model": about["model"]["name"],
        "timestamp": about["created"],
        "config": {"problem_selection": about.get("selection", "")},
        "model_identity": about["model"],
        "protocol": protocol,
    }


def find_result(reference: str, results_dir: Path) -> dict[str, Any]:
    """A result by file, by run folder, or by its name in ``results_dir``."""
    return read_result(find_result_file(reference, results_dir))


def find_result_file(reference: str, results_dir: Path) -> Path:
    """Return the file of a result that is named by it, by its run's folder, or by its run."""
    path = Path(reference).absolute()
    candidates = [path, path.with_name(f"{path.name}.json"), results_dir / f"{reference}.json"]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise RunError(f"no result '{reference}': give a results file, or a run that history lists")


def read_result(path: Path, *, follow: bool = True) -> dict[str, Any]:
    """Return a results file's content; RunError unless its fields have the types of ours."""
    result = dataclasses.replace(DOCUMENTS, follow=follow).read_json(path)
    if isinstance(result, dict) and result.get("schema", RESULTS_VERSION) != RESULTS_VERSION:
        found = str(result["schema"])[:20]
        raise RunError(f"{path} has schema {found}, not {RESULTS_VERSION}: update assay")
    if wrong := wrong_field(result, RESULT):
        raise RunError(
            f"{path}: is not a results file of assay ({wrong} is missing or of another type). "
            "Give another file."
        )
    checked: dict[str, Any] = result
    return checked
