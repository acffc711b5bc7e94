"""Extract a program from a model's text. Pure functions, one file per kind of rule."""

from assay.extract.extraction import (
    NO_CODE,
    RULES,
    UNCUT,
    VERSION,
    Step,
    alternative,
    explained,
    extract,
    program,
)

__all__ = [
    "NO_CODE", "RULES", "UNCUT", "VERSION", "Step", "alternative", "explained", "extract",
    "program",
]  # fmt: skip
# fmt: skip
