"""Judge untrusted programs in sandboxes of several kinds."""

from assay.sandbox.sandbox import Sandbox, Stage, open_sandbox, run_here, sandboxes
from assay.types import Capabilities
from assay.work import PAUSE
from assay.work.dispatch import Item

__all__ = [
    "PAUSE", "Capabilities", "Item", "Sandbox", "Stage", "open_sandbox", "run_here", "sandboxes",
]  # fmt: skip
