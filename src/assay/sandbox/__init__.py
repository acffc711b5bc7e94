"""Sandboxes by kind: untrusted programs in, verdicts out."""

from assay.sandbox.sandbox import Capabilities, Sandbox, open_sandbox, sandboxes

__all__ = ["Capabilities", "Sandbox", "open_sandbox", "sandboxes"]
