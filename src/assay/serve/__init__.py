"""Serve the judge over HTTP: verdicts on programs, and the API of SandboxFusion."""
