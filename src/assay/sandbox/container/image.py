"""Find or build the image that containers are started from, known by its digest.

For hosts without a base image, a small root file system is made of this machine's Python.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from assay.datasets import cache_dir, read_sealed, write_sealed
from assay.errors import SandboxError
from assay.sandbox.container.runtime import ContainerRuntime, find_runtime

CHOICE = "ASSAY_DOCKER_IMAGE"
NAME = "assay-sandbox"
DOCKERFILE = """\
FROM {base}
RUN ["python3", "-c", "import sys; assert sys.version_info >= (3, 11), sys.version"]
"""
BASE = "docker.io/library/python:3.11-slim-bookworm"
BUILD_S = 1800.0
SUITE = "bookworm"
HOST, DEBIAN = "host", "debian"  # in place of a root file system's path
PACKAGES = "python3-minimal,python3"
# Of the root file system that is made of this machine's Python.
LEFT_OUT = {"__pycache__", "ensurepip", "idlelib", "site-packages", "test", "tests", "turtledemo"}
# Programs that call other commands expect only these.
TOOLS = ("sh", "cat", "echo", "ls", "sleep", "true", "false", "env", "wc", "sort", "head", "tail")
FILES = ("/etc/localtime", "/usr/share/zoneinfo/UTC")
# A tmpfs that is mounted on a folder takes over the folder's mode.
FOLDERS = {"tmp": 0o1777, "proc": 0o755, "sys": 0o755, "dev": 0o755, "etc": 0o755, "usr/bin": 0o755}
LIBRARY = re.compile(r"(/\S+) \(0x")


def image_id(runtime: ContainerRuntime) -> str:
    """Return the id of the image that was built here, or that the user names by its digest."""
    chosen = os.environ.get(CHOICE, "")
    if chosen and "sha256:" not in chosen:
        raise SandboxError(f"{CHOICE}: {chosen} has no digest. Give name@sha256:… or sha256:….")
    wanted = chosen or _image_name(runtime)
    try:
        return str(runtime.inspect("image", wanted)["Id"])
    except SandboxError as error:
        if "o such image" not in str(error) and "not known" not in str(error):
            raise
        remedy = f"Pull {wanted}." if chosen else "Build it with 'assay sandbox build-image'."
        raise SandboxError(f"{runtime.tool}: has no image for the sandbox. {remedy}") from error


def build_image(base: str, root: Path | None, note: Callable[[str], None]) -> str:
    """Build the image from a base image or a root file system, and return its digest."""
    runtime = find_runtime()
    if root is not None:
        with _root_archive(root, note) as archive, archive.open("rb") as content:
            note(f"importing {archive.stat().st_size / 2**20:.0f} MB")
            found = runtime.run("import", "-", NAME, given=content, timeout_s=BUILD_S)
    else:
        note(f"building from {base}")
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "Dockerfile").write_text(DOCKERFILE.format(base=base))
            runtime.run("build", "--network=none", "--tag", NAME, folder, timeout_s=BUILD_S)
        found = NAME
    found = str(runtime.inspect("image", found.splitlines()[-1])["Id"])
    write_sealed(_record(runtime), NAME, found.encode())
    return found


def _image_name(runtime: ContainerRuntime) -> str:
    return (read_sealed(_record(runtime), NAME) or NAME.encode()).decode()


def _record(runtime: ContainerRuntime) -> Path:
    return cache_dir() / "images" / f"{Path(runtime.tool).name}.json"


@contextlib.contextmanager
def _root_archive(root: Path, note: Callable[[str], None]) -> Iterator[Path]:
    """Yield a tar file of a root file system: this host's Python, Debian, a folder or a file."""
    if root.is_file():
        yield root
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, "root.tar")
        if str(root) == HOST:
            note("collecting this machine's Python")
            _write_host_root(archive)
        else:
            if str(root) == DEBIAN:
                root = Path(folder, "root")
                _bootstrap(root, note)
            if not root.is_dir():
                raise SandboxError(f"{root}: not a root file system. Give a folder or a tar file.")
            with tarfile.open(archive, "w") as tar:
                tar.add(root, arcname=".", filter=_without_devices)
        yield archive


def _without_devices(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if member.isdev() else member


def _bootstrap(root: Path, note: Callable[[str], None]) -> None:
    tool = shutil.which("debootstrap")
    if tool is None:
        raise SandboxError("debootstrap: not installed. Install it, or give --rootfs.")
    note(f"running debootstrap for {SUITE}, which takes a minute or two")
    done = subprocess.run(
        [tool, "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BUILD_S,
    )  # fmt: skip
    if done.returncode:
        last = done.stdout.strip().splitlines()[-1:] or ["no reason"]
        raise SandboxError(f"debootstrap: failed ({last[0]}). Run it by hand, then give --rootfs.")


def _write_host_root(target: Path) -> None:
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
            _add_special(archive, name, tarfile.DIRTYPE, mode=mode)
        for path in sorted({interpreter, *modules, *libraries, *others}):
            _add(archive, path, path)
        for tool in tools:
            _add(archive, tool, Path("/usr/bin", tool.name))
        for name, goal in (("bin", "usr/bin"), ("usr/bin/python3", str(interpreter))):
            _add_special(archive, name, tarfile.SYMTYPE, linkname=goal)


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


def _add_special(archive: tarfile.TarFile, name: str, kind: bytes, **fields: Any) -> None:
    """Add a folder or a link."""
    member = tarfile.TarInfo(name)
    member.type = kind
    for field, value in fields.items():
        setattr(member, field, value)
    archive.addfile(member)
