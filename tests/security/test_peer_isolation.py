"""What a whole harness is run in: it executes programs that are out for more."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import SandboxError
from assay.peers.isolation import run_isolated

ORDINARY = 12_345
# Says what it could do, and does no harm where it can. Root outside, it owns most of this.
ATTACKER = r"""
import ctypes, json, os, socket, stat, sys
told = {}

def attempt(name, act):
    try:
        act()
        told[name] = True
    except OSError:
        told[name] = False

def write(path):
    with open(path, "a") as file:
        file.write("x")

def make(path):
    write(path)
    os.remove(path)

for line in open("/proc/self/mountinfo"):
    place = line.split()[4]
    if os.path.isdir(place):
        attempt(place, lambda: make(f"{place}/assay-was-here"))
for path in sys.argv[1:]:
    attempt(path, lambda: write(path))
    attempt(f"connect {path}", lambda: socket.socket(socket.AF_UNIX).connect(path))
for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/vm/swappiness"):
    attempt(path, lambda: os.close(os.open(path, os.O_WRONLY)))
attempt("chmod", lambda: os.chmod("/dev/null", 0o666))
attempt("network", lambda: socket.create_connection(("127.0.0.1", 9), timeout=1))
libc = ctypes.CDLL(None, use_errno=True)
told["remount"] = not libc.mount(b"", b"/", b"", 32 | 4096, b"")
told["unmount"] = not libc.umount2(b"/dev", 2)
told["namespace"] = not libc.unshare(0x10000000 | 0x20000)
told["devices"] = [n for n in os.listdir("/dev") if stat.S_ISBLK(os.stat(f"/dev/{n}").st_mode)]
told["capabilities"] = [l.split()[1] for l in open("/proc/self/status") if l.startswith("Cap")]
told["processes"] = [n for n in os.listdir("/proc") if n.isdecimal()]
with open("told.json", "w") as file:
    json.dump(told, file)
"""


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user of the machine gets to, not in /tmp."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def attacked(folder: Path, *paths: Path) -> dict[str, Any]:
    run_isolated([sys.executable, "-c", ATTACKER, *map(str, paths)], folder, dict(os.environ))
    told: dict[str, Any] = json.loads((folder / "told.json").read_text())
    return told


def check(told: dict[str, Any], folder: Path) -> None:
    could = {name for name, done in told.items() if done is True}
    assert could == {str(folder), "/tmp", "/dev/shm"}
    assert told["devices"] == []
    assert set(told["capabilities"]) == {"0" * 16}
    assert told["processes"] == ["1"]


def test_it_writes_into_its_folder_alone(public: Path) -> None:
    folder, outside = public / "inside", public / "file"
    folder.mkdir()
    outside.write_text("")
    told = attacked(folder, outside)
    check(told, folder)
    assert told[str(outside)] is False
    assert outside.read_text() == ""


def test_it_speaks_to_nobody_by_sockets(public: Path) -> None:
    folder, path = public / "inside", public / "socket"
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        told = attacked(folder, path)
    check({**told, str(path): False}, folder)  # writing is into /dev/null
    assert told[f"connect {path}"] is False


def test_hidden_folders_keep_what_is_needed(tmp_path: Path) -> None:
    """All of this is in /tmp, of which the command sees no more than it was promised."""
    folder, needed, other = tmp_path / "inside", tmp_path / "needed", tmp_path / "other"
    for path in (folder, needed / "bin", other):
        path.mkdir(parents=True)
    command = needed / "bin" / "command"
    command.write_text(
        f"#!/bin/sh\nls -d {tmp_path}/* > seen\ntouch {needed}/x 2>/dev/null; true\n"
    )
    command.chmod(0o755)
    run_isolated([str(command)], folder, dict(os.environ))
    assert (folder / "seen").read_text().split() == [str(folder), str(needed)]
    assert not (needed / "x").exists()
    run_isolated([str(command)], folder, dict(os.environ), [other])
    assert (folder / "seen").read_text().split() == [str(folder), str(needed), str(other)]


def test_what_it_says_last_is_told(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="sh failed: no luck"):
        run_isolated(["sh", "-c", "echo no luck >&2; exit 3"], tmp_path, dict(os.environ))
    with pytest.raises(SandboxError, match="/nowhere/x failed: .*No such file"):
        run_isolated(["/nowhere/x"], tmp_path, dict(os.environ))


def test_ordinary_users_isolate_as_well(public: Path) -> None:
    if os.geteuid():
        pytest.skip("the other tests show it")
    folder, outside = public / "inside", public / "file"
    folder.mkdir()
    outside.write_text("")
    for path in (folder, outside):
        os.chown(path, ORDINARY, ORDINARY)
    # The checkout may be where nobody else gets to.
    shutil.copytree(Path(assay.__file__).parent, public / "source" / "assay")
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom assay.peers.isolation import run_isolated\n"
        "run_isolated(sys.argv[2:], Path(sys.argv[1]), dict(os.environ))\n"
    )
    python = everybodys_python(public)
    attack = [python, "-c", ATTACKER, str(outside)]
    done = as_ordinary([python, "-c", script, str(folder), *attack], public)
    assert done.returncode == 0, done.stderr
    check(json.loads((folder / "told.json").read_text()), folder)


def as_ordinary(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{folder}/source"},
        user=ORDINARY, group=ORDINARY, extra_groups=[], capture_output=True, text=True,
    )  # fmt: skip


def everybodys_python(folder: Path) -> str:
    """Ours may be where nobody else gets to as well."""
    enough = f"import sys; sys.exit(sys.version_info < {sys.version_info[:2]})"
    for python in (str(Path(sys.executable).resolve()), "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            if as_ordinary([python, "-c", enough], folder).returncode == 0:
                return python
    pytest.skip("no interpreter here is everybody's")
