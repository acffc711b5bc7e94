"""Choose where the work of an evaluation is done."""

from assay.pipeline.site.site import THIS_MACHINE, CheckModel, Site, ThisMachine

__all__ = ["THIS_MACHINE", "CheckModel", "Site", "ThisMachine"]
