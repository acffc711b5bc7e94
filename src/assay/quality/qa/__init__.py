"""Decide by a policy whether a model may be released."""

from assay.quality.qa.examination import Examination, QaCheck, QaItem, Subject, qa_checks
from assay.quality.qa.quality import Evidence, examine

__all__ = ["Evidence", "Examination", "QaCheck", "QaItem", "Subject", "examine", "qa_checks"]
