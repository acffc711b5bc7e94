"""The messages between the harness and the supervisor, each a JSON list. The harness imports this.

Everything else in this folder runs in the supervisor only.
"""

from __future__ import annotations

import json
from typing import NamedTuple

SCRATCH = "/tmp"  # inside: the only folder that can be written


class TreeLimits(NamedTuple):
    """The limits of a command and all processes that it starts, together."""

    memory_mb: int = 6144  # a single process's address space as well
    processes: int = 512  # and threads
    cpu_s: int = 7200
    wall_s: int = 7200
    files_mb: int = 1024
    output_mb: int = 256


class Settings(NamedTuple):
    """The command, all that it may see, and its limits."""

    command: tuple[str, ...]
    variables: dict[str, str]
    inputs: dict[str, str]  # host files by the names of their copies
    shown: dict[str, str]  # host files by the places where the command sees them
    hidden: tuple[str, ...]  # of what is shown
    outputs: tuple[str, ...]
    limits: TreeLimits
    use_group: bool = True


class Report(NamedTuple):
    """The end of the command. The contents of the files follow it."""

    refused: str = ""  # why it cannot be isolated here
    stopped: str = ""  # the limit that it exceeded
    status: int = 0
    stderr: str = ""  # its end
    sizes: dict[str, int] = {}  # of the files  # noqa: RUF012 - never changed


def read_settings(line: bytes) -> Settings:
    settings = Settings(*json.loads(line))
    return settings._replace(limits=TreeLimits(*settings.limits))
