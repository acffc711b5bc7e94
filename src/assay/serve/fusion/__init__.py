"""Answer as SandboxFusion does, for clients that were written for it."""
