"""A container engine by its command line: Docker, or podman, which understands the same words."""

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
# In the words of Docker, of podman and of the library that they speak to their engines with.
GONE = re.compile(
    r"[Cc]annot connect|unable to connect|connection refused|connection reset|error during connect"
    r"|shutting down|broken pipe|closed network connection|\bEOF\b"
)
HINT = re.compile(r"(See|Run) '.*--help'")
WORKER_LABEL = "assay.worker"
OWNER_LABEL = "assay.harness"


class EngineGoneError(SandboxError):
    """The engine itself does not answer, which may pass."""


@dataclass(frozen=True, slots=True)
class Engine:
    """The command, by name or path."""

    tool: str

    def asked(
        self, *arguments: str, given: IO[bytes] | None = None, timeout_s: float = QUESTION_S
    ) -> str:
        """What a command prints; SandboxError with its last words if it fails."""
        try:
            done = subprocess.run(
                [self.tool, *arguments],
                stdin=given or subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_s,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired as error:
            raise EngineGoneError(
                f"{self.tool} {arguments[0]}: no answer within {timeout_s:g} s. Restart the engine."
            ) from error
        if done.returncode:
            raise self.failure(done.stderr.decode(errors="replace"))
        return done.stdout.decode(errors="replace").strip()

    def failure(self, said: str) -> SandboxError:
        """What its words on stderr mean."""
        lines = [line.strip() for line in said.splitlines()]
        telling = [line for line in lines if line and not HINT.match(line)] or ["no reason"]
        if gone := [line for line in telling if GONE.search(line)]:
            return EngineGoneError(
                f"{self.tool}: installed, but its engine does not answer ({gone[-1]}). Start the "
                "engine, or set DOCKER_HOST to its address."
            )
        return SandboxError(f"{self.tool}: {telling[-1]}")

    def is_podman(self) -> bool:
        """Under whatever name."""
        return "podman" in self.asked("--version")

    def inspected(self, kind: str, name: str) -> dict[str, Any]:
        (found,) = json.loads(self.asked(kind, "inspect", name))
        return dict(found)

    def wait_until_there(self, seconds: float) -> None:
        """While it is being restarted, say."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.asked("version", timeout_s=10)
            except EngineGoneError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
            else:
                return

    def remove_leftovers(self) -> None:
        """Containers of harnesses of this machine that are gone; those that cannot be stay."""
        with contextlib.suppress(SandboxError):
            for container in self.asked(
                "ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={WORKER_LABEL}"
            ).split():
                if _is_gone(self._owner_of(container)):
                    self.remove(container)

    def remove(self, container: str) -> None:
        """If the engine answers: it may be gone, or the container."""
        with contextlib.suppress(SandboxError):
            self.asked("rm", "--force", container, timeout_s=REMOVAL_S)

    def _owner_of(self, container: str) -> str:
        """Of the two engines only Docker can be asked for a label in a list."""
        try:
            labels = self.inspected("container", container)["Config"]["Labels"]
        except SandboxError:  # it has ended by itself meanwhile
            return ""
        return str((labels or {}).get(OWNER_LABEL, ""))


def find_engine() -> Engine:
    """The one that is asked for, or the first that is installed."""
    wanted = os.environ.get(TOOL, "")
    for tool in [wanted] if wanted else ENGINES:
        if shutil.which(tool):
            return Engine(tool)
    raise SandboxError(
        f"container engine: {wanted or ' or '.join(ENGINES)} is not on PATH. Install one, or use "
        "--sandbox process."
    )


def owner() -> str:
    """Name this process among all that ever were on this machine."""
    return "/".join((_machine(), _boot(), str(os.getpid()), _started(os.getpid())))


def _is_gone(owner: str) -> bool:
    """Whether it was a process of this machine and no longer runs."""
    machine, boot, pid, started = (owner.split("/") + [""] * 4)[:4]
    if machine != _machine() or not pid.isdecimal():
        return False
    return boot != _boot() or started != _started(int(pid))


def _machine() -> str:
    return _line("/etc/machine-id") or os.uname().nodename


def _boot() -> str:
    return _line("/proc/sys/kernel/random/boot_id")


def _started(pid: int) -> str:
    """In ticks since the boot; nothing if it is not there."""
    return next(iter(_line(f"/proc/{pid}/stat").rpartition(")")[2].split()[19:20]), "")


def _line(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
