"""The supervisor that runs a peer's whole command in a sandbox; ``isolation`` starts it.

It is an interpreter of its own without site packages and shares the sandbox's system calls and
filters (``sandbox.inside``).
"""
