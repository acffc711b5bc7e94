"""Share what packages know about filling in code: the tokens of models, and how texts compare."""

from assay.infilling.similarity import edit_similarity, is_exact_match
from assay.infilling.tokens import (
    FORMS,
    MARKS,
    Gap,
    GapTokens,
    build_gap,
    cut_marks,
    describe_missing,
    find_gap,
    middle_of,
)

__all__ = [
    "FORMS", "MARKS", "Gap", "GapTokens", "build_gap", "cut_marks", "describe_missing",
    "edit_similarity", "find_gap", "is_exact_match", "middle_of",
]  # fmt: skip
