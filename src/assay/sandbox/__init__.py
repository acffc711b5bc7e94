"""Judge untrusted programs in sandboxes of several kinds."""

from assay.sandbox.sandbox import Sandbox, open_sandbox, sandboxes
from assay.types import Capabilities

__all__ = ["Capabilities", "Sandbox", "open_sandbox", "sandboxes"]
