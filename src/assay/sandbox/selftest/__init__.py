"""Attacks on a sandbox, and what this machine offers it."""
