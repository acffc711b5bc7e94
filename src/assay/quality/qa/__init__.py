"""Decide by a policy whether a model may be released."""

from assay.quality.qa.quality import Item, Quality, Subject

__all__ = ["Item", "Quality", "Subject"]
