"""Judge: the road from a text to a verdict, which runs, services and rewards share."""

from assay.judging.answers import Computation, decide, judge_jobs
from assay.judging.attempts import Attempts, begin, judge_extracted
from assay.judging.job import JudgeTask, task_of, tasks_of

__all__ = [
    "Attempts", "Computation", "JudgeTask", "begin", "decide", "judge_extracted", "judge_jobs",
    "task_of", "tasks_of",
]  # fmt: skip
