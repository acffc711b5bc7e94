"""Read and write run folders and results files, list them, and compare them."""

from __future__ import annotations

from assay.runs.about import Environment, ParityGateOutcome
from assay.runs.batch_output import BatchLine, BatchOutput, BatchSettings
from assay.runs.caches import CompletionStore, KeptData, VerdictCache
from assay.runs.checks.run_folder import check_resumed
from assay.runs.compare import Comparison, ComparisonFamily, compare, compare_family
from assay.runs.folder import (
    EncodedCompletion,
    JudgedLines,
    PartTimes,
    RunReader,
    RunWriter,
    encode_completion,
    encode_judged,
    open_run,
)
from assay.runs.history import (
    RunEntry,
    RunFilter,
    collect_runs,
    find_result,
    find_run_folder,
    list_runs,
)
from assay.runs.result import Result
from assay.runs.results import (
    build_result,
    kept_selection,
    read_result,
    read_tsv,
    render_result,
    with_earlier_checks,
    write_evidence,
    write_result,
)

__all__ = [
    "BatchLine", "BatchOutput", "BatchSettings", "Comparison", "ComparisonFamily",
    "CompletionStore", "EncodedCompletion", "Environment", "JudgedLines", "KeptData",
    "ParityGateOutcome", "PartTimes", "Result", "RunEntry", "RunFilter", "RunReader", "RunWriter",
    "VerdictCache", "build_result", "check_resumed", "collect_runs", "compare", "compare_family",
    "encode_completion", "encode_judged", "find_result", "find_run_folder", "kept_selection",
    "list_runs", "open_run", "read_result", "read_tsv", "render_result", "with_earlier_checks",
    "write_evidence", "write_result",
]  # fmt: skip
