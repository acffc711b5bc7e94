"""Build a small root file system from this machine's Python, for hosts without an image."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from assay.errors import SandboxError

LEFT_OUT = {"__pycache__", "ensurepip", "idlelib", "site-packages", "test", "tests", "turtledemo"}
# Programs that call other commands expect only these.
TOOLS = ("sh", "cat", "echo", "ls", "sleep", "true", "false", "env", "wc", "sort", "head", "tail")
FILES = ("/etc/localtime", "/usr/share/zoneinfo/UTC")
# A tmpfs that is mounted on a folder takes over the folder's mode.
FOLDERS = {"tmp": 0o1777, "proc": 0o755, "sys": 0o755, "dev": 0o755, "etc": 0o755, "usr/bin": 0o755}
LIBRARY = re.compile(r"(/\S+) \(0x")


def write_host_root(target: Path) -> None:
    """Write a tar file with Python, its standard library, and what both need, at their paths."""
    interpreter = Path(sys.executable).resolve()
    standard = Path(sysconfig.get_path("stdlib", vars={"base": sys.base_prefix})).resolve()
    modules = list(_below(standard))
    tools = [Path("/bin", name) for name in TOOLS if Path("/bin", name).exists()]
    compiled = [path for path in modules if path.suffix == ".so"]
    libraries = _libraries([interpreter, *tools, *compiled])
    others = [Path(name) for name in FILES if Path(name).exists()]
    with tarfile.open(target, "w") as archive:
        for name, mode in FOLDERS.items():
            _add_folder(archive, name, mode)
        for path in sorted({interpreter, *modules, *libraries, *others}):
            _add(archive, path, path)
        for tool in tools:
            _add(archive, tool, Path("/usr/bin", tool.name))
        for name, goal in (("bin", "usr/bin"), ("usr/bin/python3", str(interpreter))):
            _add_link(archive, name, goal)


def _below(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name in LEFT_OUT:
            continue
        if entry.is_dir():
            yield from _below(entry)
        elif entry.is_file():
            yield entry


def _libraries(files: Iterable[Path]) -> set[Path]:
    """Return the shared libraries of these files, by the paths at which they are loaded."""
    done = subprocess.run(
        ["ldd", *map(str, files)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, env={"PATH": os.defpath},
    )  # fmt: skip
    found = {Path(path) for path in LIBRARY.findall(done.stdout)}
    if not found:
        raise SandboxError(
            f"ldd: lists no shared libraries of Python ({done.stderr.strip()[:200]}). "
            "Give --rootfs another root file system."
        )
    return found


def _add(archive: tarfile.TarFile, source: Path, place: Path) -> None:
    """Add a file's content under this name, readable for everybody."""
    member = archive.gettarinfo(str(source.resolve()), str(place).lstrip("/"))
    member.mode = 0o755 if os.access(source, os.X_OK) else 0o644
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.type = tarfile.REGTYPE
    member.size = source.stat().st_size
    with source.open("rb") as content:
        archive.addfile(member, content)


def _add_folder(archive: tarfile.TarFile, name: str, mode: int) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.mode = tarfile.DIRTYPE, mode
    archive.addfile(member)


def _add_link(archive: tarfile.TarFile, name: str, goal: str) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, goal
    archive.addfile(member)
