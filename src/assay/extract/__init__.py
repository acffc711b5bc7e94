"""Extract a program from a model's text. Pure functions, one file per kind of rule."""

from assay.extract.extraction import (
    NO_CODE,
    UNCUT,
    VERSION,
    Step,
    alternative,
    explain_extraction,
    extract,
    program,
)
from assay.extract.rule import extraction_rules

__all__ = [
    "NO_CODE", "UNCUT", "VERSION", "Step", "alternative", "explain_extraction", "extract",
    "extraction_rules", "program",
]  # fmt: skip
