"""Run a peer's whole command in a sandbox, by a supervisor that ``isolation`` starts.

It is a separate interpreter without site packages. It shares the sandbox's system calls and filters
(``sandbox.inside``).
"""
