"""Commands that are run as a peer's are, by this user and by another."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.peers.isolation import PeerCommand, TreeLimits, run_isolated
from tests.security.peer_attacks import REPORT

ORDINARY = 12_345
SMALL = TreeLimits(memory_mb=512, processes=64, cpu_s=10, wall_s=20, files_mb=64, output_mb=1)


def python(code: str, limits: TreeLimits = SMALL, **others: Any) -> dict[str, bytes]:
    """Run code as the command; it leaves its report in the file ``report``."""
    command = (sys.executable, "-c", code)
    return run_isolated(PeerCommand(command, outputs=(REPORT,), limits=limits, **others))


def as_ordinary(arguments: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run our code as another user, with the system's Python: ours may be out of its reach."""
    enough = f"import sys; sys.exit(sys.version_info < {(3, 11)})"
    if os.geteuid():
        pytest.skip("the other tests show it")
    if subprocess.run(["/usr/bin/python3", "-c", enough], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("the system's Python is older than 3.11")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        shutil.copytree(Path(assay.__file__).parent, f"{folder}/assay")
        return subprocess.run(
            ["/usr/bin/python3", *arguments], cwd=folder, timeout=120,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": folder, **variables},
            user=ORDINARY, group=ORDINARY, extra_groups=[], capture_output=True, text=True,
        )  # fmt: skip
