"""Provide what a package needs to run stages in processes that it starts itself."""

from assay.sandbox.judges.judge_messages import (
    ContextsSent,
    Items,
    StageEnd,
    StageInbox,
    StageStart,
    pickle_as_call,
)
from assay.sandbox.judges.stages import JudgeStage, OutputsStage, each, split_job

__all__ = [
    "ContextsSent",
    "Items",
    "JudgeStage",
    "OutputsStage",
    "StageEnd",
    "StageInbox",
    "StageStart",
    "each",
    "pickle_as_call",
    "split_job",
]  # fmt: skip
