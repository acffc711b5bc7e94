"""Evaluate on the nodes of a Ray cluster: engines and judges there, the run's folder here."""

from assay.cluster.site import RaySite, open_cluster

__all__ = ["RaySite", "open_cluster"]
