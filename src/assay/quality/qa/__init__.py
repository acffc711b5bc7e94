"""Decide by a policy whether a model may be released."""

from assay.quality.qa.examination import (
    Evidence,
    Examination,
    QaCheck,
    QaItem,
    Subject,
    examine,
    qa_checks,
)

__all__ = ["Evidence", "Examination", "QaCheck", "QaItem", "Subject", "examine", "qa_checks"]
