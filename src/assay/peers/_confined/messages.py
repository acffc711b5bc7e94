"""What the harness and the supervisor tell each other, each one a list of JSON."""

from __future__ import annotations

from typing import NamedTuple


class Settings(NamedTuple):
    """The command, all that it may see, and its limits."""

    command: tuple[str, ...]
    variables: dict[str, str]
    inputs: dict[str, str]  # host files by the names of their copies
    shown: dict[str, str]  # host files by the places where the command sees them
    hidden: tuple[str, ...]  # of what is shown
    outputs: tuple[str, ...]
    memory_mb: int
    processes: int
    cpu_s: int
    wall_s: int
    files_mb: int
    output_mb: int
    use_group: bool = True


class Report(NamedTuple):
    """The end of the command. The contents of the files follow it."""

    refused: str = ""  # why it cannot be isolated here
    stopped: str = ""  # the limit that it exceeded
    status: int = 0
    stderr: str = ""  # its end
    sizes: dict[str, int] = {}  # of the files  # noqa: RUF012 - never changed
