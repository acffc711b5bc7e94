"""Runs a whole command where it can do no harm: peers execute programs without isolation."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from assay.errors import SandboxError
from assay.peers import _isolated

# A network, processes, mounts and shared memory of its own; all end with their parent.
UNSHARE = (
    "unshare", "--user", "--map-root-user", "--net", "--ipc", "--pid", "--mount", "--mount-proc",
    "--fork", "--kill-child",
)  # fmt: skip


def run_isolated(
    command: list[str], folder: Path, environment: dict[str, str], readable: Sequence[Path] = ()
) -> None:
    """Without network or capabilities; it may write into ``folder`` and private ``/tmp`` alone.

    All else is read-only. ``readable`` are folders that are needed though they may be in one of
    those that are hidden (``/tmp``, ``/run``); the command's own is among them.
    """
    asked = {
        "command": command,
        "folder": str(folder.resolve()),
        "readable": [str(path.resolve()) for path in (*readable, *_installed(command[0]))],
        "sockets": _sockets(),
    }
    inside = [sys.executable, "-I", "-S", _isolated.__file__, json.dumps(asked)]
    try:
        done = subprocess.run(
            [*UNSHARE, *inside],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            start_new_session=True,  # no terminal to write to
        )
    except FileNotFoundError as error:
        raise SandboxError("unshare of util-linux is needed to isolate other harnesses") from error
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no reason"]
        if done.returncode == _isolated.REFUSED or last[0].startswith("unshare:"):
            raise SandboxError(
                f"this machine does not let other harnesses be isolated ({last[0]}): run "
                f"{command[0]} on another"
            )
        raise SandboxError(f"{command[0]} failed: {last[0]}")


def _installed(command: str) -> list[Path]:
    """Where it is with what belongs to it: the environment of ``bin/command``."""
    folder = Path(command).parent
    if not folder.is_absolute() or not folder.is_dir():
        return []
    return [folder.parent if folder.name == "bin" else folder]


def _sockets() -> list[str]:
    """By which others on this machine are spoken to, wherever they are."""
    try:
        lines = Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return []
    named = (line.split(maxsplit=7)[7:] for line in lines)
    return sorted({name for found in named for name in found if name.startswith("/")})
