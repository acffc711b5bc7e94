"""Runs on disk: folders that grow line by line, results, history, comparison."""

from __future__ import annotations

from assay.runs.batch_output import BatchLine, BatchOutput, BatchSettings
from assay.runs.compare import Comparison, compare
from assay.runs.folder import RunReader, RunWriter, open_run
from assay.runs.history import find_result, list_runs
from assay.runs.kept import KeptData
from assay.runs.results import (
    RESULTS_VERSION,
    add_checks,
    build_result,
    kept_checks,
    kept_selection,
    read_tsv,
    write_evidence,
    write_result,
)
from assay.runs.verdict_cache import VerdictCache

__all__ = [
    "RESULTS_VERSION",
    "BatchLine",
    "BatchOutput",
    "BatchSettings",
    "Comparison",
    "KeptData",
    "RunReader",
    "RunWriter",
    "VerdictCache",
    "add_checks",
    "build_result",
    "compare",
    "find_result",
    "kept_checks",
    "kept_selection",
    "list_runs",
    "open_run",
    "read_tsv",
    "write_evidence",
    "write_result",
]
