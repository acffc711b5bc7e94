"""Find or build the image that containers are started from, known by its digest."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from assay.datasets import cache_dir, read_sealed, write_sealed
from assay.errors import SandboxError
from assay.sandbox.container.host_root import write_host_root
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
            write_host_root(archive)
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
