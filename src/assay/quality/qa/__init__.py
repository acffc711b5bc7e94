"""Decide by a policy whether a model may be released."""

from assay.quality.qa.examination import Examination, Item, QaCheck, Subject, qa_checks
from assay.quality.qa.quality import Evidence, examine

__all__ = ["Evidence", "Examination", "Item", "QaCheck", "Subject", "examine", "qa_checks"]
