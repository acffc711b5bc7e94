"""Control a container runtime by its command line: Docker, or podman with the same commands."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from assay.errors import SandboxError

ENGINES = ("docker", "podman")
TOOL = "ASSAY_CONTAINER_ENGINE"
QUESTION_S = 60.0
REMOVAL_S = 20.0
# Messages of Docker, of podman and of the library by which they talk to their runtimes.
GONE = re.compile(
    r"[Cc]annot connect|unable to connect|connection refused|connection reset|error during connect"
    r"|shutting down|broken pipe|closed network connection|\bEOF\b"
)
HINT = re.compile(r"(See|Run) '.*--help'")
WORKER_LABEL = "assay.worker"
OWNER_LABEL = "assay.harness"


class RuntimeGoneError(SandboxError):
    """The runtime itself does not answer, which may be temporary."""


@dataclass(frozen=True, slots=True)
class ContainerRuntime:
    """The command of a container runtime, given by name or path."""

    tool: str

    def run(
        self, *arguments: str, given: IO[bytes] | None = None, timeout_s: float = QUESTION_S
    ) -> str:
        """Return what a command prints. Raise SandboxError with its last line if it fails."""
        try:
            done = subprocess.run(
                [self.tool, *arguments],
                stdin=given or subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_s,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired as error:
            raise RuntimeGoneError(
                f"{self.tool} {arguments[0]}: no answer within {timeout_s:g} s. Restart the "
                "container runtime."
            ) from error
        if done.returncode:
            raise self.failure(done.stderr.decode(errors="replace"))
        return done.stdout.decode(errors="replace").strip()

    def failure(self, said: str) -> SandboxError:
        """Return the error that a message on stderr means."""
        lines = [line.strip() for line in said.splitlines()]
        telling = [line for line in lines if line and not HINT.match(line)] or ["no reason"]
        if gone := [line for line in telling if GONE.search(line)]:
            return RuntimeGoneError(
                f"{self.tool}: installed, but its runtime does not answer ({gone[-1]}). Start "
                "it, or set DOCKER_HOST to its address."
            )
        return SandboxError(f"{self.tool}: {telling[-1]}")

    def is_podman(self) -> bool:
        """Return whether the command is podman, under whatever name."""
        return "podman" in self.run("--version")

    def inspect(self, kind: str, name: str) -> dict[str, Any]:
        (description,) = json.loads(self.run(kind, "inspect", name))
        return dict(description)

    def wait_until_there(self, seconds: float) -> None:
        """Wait until the runtime answers, for example while it is being restarted."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.run("version", timeout_s=10)
            except RuntimeGoneError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
            else:
                return

    def remove_leftovers(self) -> None:
        """Remove containers of this machine's ended harnesses, as far as possible."""
        with contextlib.suppress(SandboxError):
            for container in self.run(
                "ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={WORKER_LABEL}"
            ).split():
                if _is_gone(self._owner_of(container)):
                    self.remove(container)

    def remove(self, container: str) -> None:
        """Remove a container, if the runtime answers and the container still exists."""
        with contextlib.suppress(SandboxError):
            self.run("rm", "--force", container, timeout_s=REMOVAL_S)

    def _owner_of(self, container: str) -> str:
        """Return a container's owner label. Of the two runtimes only Docker can list labels."""
        try:
            labels = self.inspect("container", container)["Config"]["Labels"]
        except SandboxError:  # it has ended by itself meanwhile
            return ""
        return str((labels or {}).get(OWNER_LABEL, ""))


def find_runtime() -> ContainerRuntime:
    """Return the runtime that the user chose, or the first that is installed."""
    wanted = os.environ.get(TOOL, "")
    for tool in [wanted] if wanted else ENGINES:
        if shutil.which(tool):
            return ContainerRuntime(tool)
    raise SandboxError(
        f"container runtime: {wanted or ' or '.join(ENGINES)} is not on PATH. Install one, or use "
        "--sandbox process."
    )


def owner() -> str:
    """Return a name of this process that is unique on this machine, across restarts."""
    return "/".join((_machine(), _boot(), str(os.getpid()), _started(os.getpid())))


def _is_gone(owner: str) -> bool:
    """Return whether it was a process of this machine that no longer runs."""
    machine, boot, pid, started = (owner.split("/") + [""] * 4)[:4]
    if machine != _machine() or not pid.isdecimal():
        return False
    return boot != _boot() or started != _started(int(pid))


def _machine() -> str:
    return _line("/etc/machine-id") or os.uname().nodename


def _boot() -> str:
    return _line("/proc/sys/kernel/random/boot_id")


def _started(pid: int) -> str:
    """Return when a process started, in ticks since boot, or an empty text if it is gone."""
    return next(iter(_line(f"/proc/{pid}/stat").rpartition(")")[2].split()[19:20]), "")


def _line(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
