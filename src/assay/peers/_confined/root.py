"""Namespaces, and a root folder that shows a command nothing but what it needs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from _inside import kernel
from _inside.kernel import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_REC

NAMESPACES = (
    kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
)  # fmt: skip
NOBODY = 65534
STAGING = "/tmp"  # exists everywhere; covered only in our own mount namespace
SCRATCH = "/tmp"  # inside: the only folder that can be written
SYSTEM_FOLDERS = ("/usr", "/lib", "/lib32", "/lib64", "/bin")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives")
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))
FIGURES = ("cpuinfo", "loadavg", "meminfo", "stat", "uptime")  # psutil reads them
INODES = 1 << 16


def enter_namespaces(*, through_user_namespace: bool) -> None:
    """Enter new namespaces. The next child is the first process of a new process namespace."""
    if not through_user_namespace:
        kernel.unshare(NAMESPACES)
        return
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER | NAMESPACES)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{NOBODY} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{NOBODY} {gid} 1")


def enter_private_root(settings: dict[str, Any], uid: int | None) -> None:
    """Leave the host's files behind, for the supervisor too.

    What stays is read-only: the system's folders and ``shown``, a map from places to host files,
    less ``hidden``. ``inputs`` are copied into the scratch folder, which belongs to ``uid``.
    """
    kernel.mount("none", "/", "", MS_REC | MS_PRIVATE)
    # Held open first: whatever lies below the staging folder is about to be covered.
    sources = {place: os.open(path, os.O_PATH) for place, path in _visible(settings).items()}
    inputs = {name: os.open(path, os.O_RDONLY) for name, path in settings["inputs"].items()}
    _mount_tmpfs(STAGING, "size=1m,nr_inodes=1k,mode=755")
    for path in filter(os.path.islink, SYSTEM_FOLDERS):
        Path(STAGING + path).symlink_to(Path(path).readlink())
    scratch = Path(STAGING + SCRATCH)
    scratch.mkdir()
    _mount_tmpfs(str(scratch), f"size={settings['files_mb']}m,nr_inodes={INODES},mode=1777")
    for place in sorted(sources):  # outer folders before inner ones
        _bind_read_only(sources[place], STAGING + place, device=place in DEVICES)
    for place in settings["hidden"]:
        _mount_tmpfs(STAGING + place, "size=4k,nr_inodes=1,mode=555")
    for name, source in inputs.items():
        with os.fdopen(source, "rb") as content, (scratch / name).open("wb") as target:
            shutil.copyfileobj(content, target)
        if uid is not None:
            os.chown(scratch / name, uid, uid)
    Path(STAGING, "dev/shm").symlink_to(SCRATCH)
    _mount_proc(STAGING + "/proc")
    os.chdir(STAGING)
    kernel.pivot_root_here()
    kernel.set_mount_attributes("/", _attributes(device=False), recursive=False)


def _visible(settings: dict[str, Any]) -> dict[str, str]:
    folders = [
        path for path in SYSTEM_FOLDERS if Path(path).is_dir() and not Path(path).is_symlink()
    ]
    files = [path for path in (*SYSTEM_FILES, *DEVICES) if Path(path).exists()]
    shown: dict[str, str] = settings["shown"]
    return {path: path for path in (*folders, *files)} | shown


def _mount_tmpfs(place: str, options: str) -> None:
    kernel.mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, options)


def _mount_proc(place: str) -> None:
    """Show the command's own processes and the machine's figures, no settings of the kernel."""
    flags = MS_NOSUID | MS_NODEV | MS_NOEXEC
    Path(place).mkdir()
    kernel.mount("proc", place, "proc", flags)
    for entry in os.scandir(place):
        if entry.name.isdecimal() or entry.name in FIGURES or entry.is_symlink():
            continue
        if entry.is_dir():
            kernel.mount("tmpfs", entry.path, "tmpfs", flags, "size=4k,nr_inodes=1,mode=555")
        else:
            kernel.mount(os.devnull, entry.path, "", MS_BIND)
            kernel.set_mount_attributes(entry.path, _attributes(device=False), recursive=False)


def _bind_read_only(source: int, target: str, *, device: bool) -> None:
    origin = f"/proc/self/fd/{source}"
    if Path(origin).is_dir():
        Path(target).mkdir(parents=True, exist_ok=True)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).touch()
    kernel.mount(origin, target, "", MS_BIND | MS_REC)
    kernel.set_mount_attributes(target, _attributes(device=device), recursive=True)
    os.close(source)


def _attributes(*, device: bool) -> int:
    attributes: int = kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NOSUID
    return attributes if device else attributes | kernel.MOUNT_ATTR_NODEV
