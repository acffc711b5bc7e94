"""A container engine by its command line: Docker, or podman, which understands the same words."""

from __future__ import annotations

import json
import os
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
                f"{self.tool} {arguments[0]} did not answer within {timeout_s:g} s"
            ) from error
        if done.returncode:
            raise self.failure(done.stderr.decode(errors="replace"))
        return done.stdout.decode(errors="replace").strip()

    def failure(self, said: str) -> SandboxError:
        """What its words on stderr mean."""
        last = next((line for line in reversed(said.splitlines()) if line.strip()), "no reason")
        if "Cannot connect" in said or "connection refused" in said or "EOF" in last:
            return EngineGoneError(
                f"{self.tool} is installed but its engine does not answer ({last.strip()}): start "
                "it, or set DOCKER_HOST to where it listens"
            )
        return SandboxError(f"{self.tool}: {last.strip()}")

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
        """Containers of harnesses of this machine that are gone."""
        listed = self.asked(
            "ps", "--all", "--filter", f"label={WORKER_LABEL}",
            "--format", f'{{{{.ID}}}} {{{{.Label "{OWNER_LABEL}"}}}}',
        )  # fmt: skip
        for line in listed.splitlines():
            container, _, owner = line.partition(" ")
            if _is_gone(owner):
                self.remove(container)

    def remove(self, container: str) -> None:
        subprocess.run(
            [self.tool, "rm", "--force", container],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=QUESTION_S,
            start_new_session=True,
        )


def find_engine() -> Engine:
    """The one that is asked for, or the first that is installed."""
    wanted = os.environ.get(TOOL, "")
    for tool in [wanted] if wanted else ENGINES:
        if shutil.which(tool):
            return Engine(tool)
    raise SandboxError(
        f"no container engine here ({wanted or ' or '.join(ENGINES)} is not on PATH): install one, "
        "or use --sandbox process"
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
