"""Compare a model with a reference: the same prompts through both engines."""

from assay.quality.parity.compare import (
    PROMPTS,
    Parity,
    compare,
    fixed_prompts,
    logit_findings,
)

__all__ = ["PROMPTS", "Parity", "compare", "fixed_prompts", "logit_findings"]
