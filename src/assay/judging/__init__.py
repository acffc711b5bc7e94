"""Judge: the road from a text to a verdict, which runs, services and rewards share."""

from assay.judging.answers import Computation, decide, judge_jobs
from assay.judging.job import JudgeTask, mark_truncated, task_of, tasks_of

__all__ = [
    "Computation", "JudgeTask", "decide", "judge_jobs", "mark_truncated", "task_of", "tasks_of",
]  # fmt: skip
