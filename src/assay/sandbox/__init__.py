"""Judge untrusted programs in sandboxes of several kinds."""

from assay.sandbox.sandbox import PAUSE, Item, Sandbox, Stage, open_sandbox, run_here, sandboxes
from assay.types import Capabilities

__all__ = [
    "PAUSE", "Capabilities", "Item", "Sandbox", "Stage", "open_sandbox", "run_here", "sandboxes",
]  # fmt: skip
