"""A container runtime for tests: one that runs already, or an installed one started here."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

START_S = 60.0
OPTIONS = ("--iptables=false", "--ip-forward=false", "--bridge=none")


class OwnEngine:
    """A ``dockerd`` with folders of its own, ended by its pid."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.address = f"unix://{folder}/docker.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    "dockerd", *OPTIONS, "--host", self.address,
                    "--data-root", f"{self._folder}/data", "--exec-root", f"{self._folder}/exec",
                    "--pidfile", f"{self._folder}/pid",
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + START_S
        while not answers(self.address):
            if self._process.poll() is not None or time.monotonic() > deadline:
                last = (self._folder / "log").read_text(errors="replace").splitlines()[-1:]
                pytest.skip(f"dockerd does not start here: {last}")
            time.sleep(0.2)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)


def answers(address: str = "") -> bool:
    environment = {**os.environ, **({"DOCKER_HOST": address} if address else {})}
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        asked = ["docker", "version", "--format", "{{.Server.Version}}"]
        done = subprocess.run(asked, env=environment, capture_output=True, timeout=20)
        return done.returncode == 0
    return False


@contextlib.contextmanager
def running_engine() -> Iterator[OwnEngine | None]:
    """With ``DOCKER_HOST`` set to it; None if it is somebody else's."""
    if answers():
        yield None
        return
    _skip_unless_startable()
    with tempfile.TemporaryDirectory(prefix="assay-engine-", dir="/var/tmp") as folder:
        engine = OwnEngine(Path(folder))
        engine.start()
        before = os.environ.get("DOCKER_HOST")
        os.environ["DOCKER_HOST"] = engine.address
        try:
            yield engine
        finally:
            engine.stop()
            if before is None:
                del os.environ["DOCKER_HOST"]
            else:
                os.environ["DOCKER_HOST"] = before


def _skip_unless_startable() -> None:
    """Skip where no runtime can be started. Tests install nothing on the system."""
    if not shutil.which("dockerd"):
        pytest.skip("needs a container runtime. Install one with 'make container-engine'.")
    if os.geteuid():
        pytest.skip("needs a running container runtime, or root to start one")
