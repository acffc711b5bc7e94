"""The functions of ``import assay``. They print nothing unless given a reporter."""

from assay.api.evaluation import (
    evaluate,
    evaluate_suite,
    open_suite,
    plan_suite,
    run_evaluation,
    run_suite,
)
from assay.api.opening import (
    check_benchmark,
    load_benchmark,
    load_run,
    open_model,
    run_check,
)
from assay.api.remote import RemoteJudge
from assay.api.results import compare, compare_family, leaderboard, plan, view, write_report
from assay.judging.judge import Judge, judge

__all__ = [
    "Judge", "RemoteJudge", "check_benchmark", "compare", "compare_family", "evaluate",
    "evaluate_suite", "judge", "leaderboard", "load_benchmark", "load_run", "open_model",
    "open_suite", "plan", "plan_suite", "run_check", "run_evaluation", "run_suite", "view",
    "write_report",
]  # fmt: skip
