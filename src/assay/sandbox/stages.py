"""Provide what a package needs to run stages in processes that it starts itself."""

from assay.sandbox.judges.messages import (
    ContextsReceived,
    ContextsSent,
    Items,
    StageEnd,
    StageStart,
    pickle_as_call,
)
from assay.sandbox.judges.stages import JudgeStage, OutputsStage, split_job

__all__ = [
    "ContextsReceived", "ContextsSent", "Items", "JudgeStage", "OutputsStage", "StageEnd",
    "StageStart", "pickle_as_call", "split_job",
]  # fmt: skip
