"""Runs a whole command where it can do no harm: peers execute programs without isolation."""

from __future__ import annotations

import subprocess
from pathlib import Path

from assay.errors import SandboxError

# A network, processes and mounts of its own; all files read-only but for one folder and /tmp.
UNSHARE = ("unshare", "--user", "--map-root-user", "--net", "--pid", "--mount", "--fork")
INSIDE = """
mount --make-rprivate / && mount --rbind "$1" "$1" && mount -o bind,remount,ro / || exit 99
for folder in /tmp /dev/shm; do
    case "$1" in $folder/*) ;; *) mount -t tmpfs none $folder || exit 99 ;; esac
done
cd "$1" && shift && exec "$@"
"""
REFUSED = 99


def run_isolated(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    """It may write into ``folder`` alone."""
    whole = [*UNSHARE, "--mount-proc", "sh", "-c", INSIDE, "sh", str(folder), *command]
    try:
        done = subprocess.run(
            whole, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    except FileNotFoundError as error:
        raise SandboxError("unshare of util-linux is needed to isolate other harnesses") from error
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no reason"]
        if done.returncode == REFUSED or last[0].startswith("unshare:"):
            raise SandboxError(
                f"this machine does not let other harnesses be isolated ({last[0]}): run "
                f"{command[0]} on another"
            )
        raise SandboxError(f"{command[0]} failed: {last[0]}")
