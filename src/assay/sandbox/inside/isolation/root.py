"""Enter namespaces, and a root folder that holds only what Python needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Container

from . import kernel, loopback, proc, visible
from .kernel import MS_BIND, MS_NODEV, MS_NOSUID, MS_PRIVATE, MS_REC

ALL_NAMESPACES = (
    kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
)  # fmt: skip
NOBODY = 65534
STAGING = "/tmp"  # exists everywhere; covered only in our own mount namespace
# Two levels, for Landlock: a rule for the outer folder covers what is mounted on the inner one.
SCRATCH_RULE = "/scratch"
SCRATCH = f"{SCRATCH_RULE}/tmp"
PROC = "/proc"
INODES = 4096
EMPTY = "size=4k,nr_inodes=1,mode=555"


def enter_namespaces(*, through_user_namespace: bool) -> None:
    """Enter new mount, network, IPC and host-name namespaces.

    The next child is pid 1 of another.
    """
    if not through_user_namespace:
        kernel.unshare(ALL_NAMESPACES)
        return
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER | ALL_NAMESPACES)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{NOBODY} {uid} 1"),
        ("gid_map", f"{NOBODY} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def enter_private_root(
    shown: list[str], hidden: list[str], files_mb: int, allowed: Container[str]
) -> None:
    """Leave the host's files: read-only system and Python folders, own /proc, small /tmp."""
    build({path: path for path in shown}, hidden)
    if "loopback" in allowed:
        loopback.switch_on(STAGING)
    os.makedirs(STAGING + PROC)
    proc.mount(STAGING + PROC, whole="figures" in allowed)
    os.makedirs(STAGING + SCRATCH)
    mount_scratch(STAGING + SCRATCH, files_mb)
    for name in ("/tmp", "/dev/shm"):
        os.symlink(SCRATCH, STAGING + name)
    enter()


def build(
    shown: dict[str, str], hidden: list[str], prepare: Callable[[], None] = lambda: None
) -> None:
    """Show host files at their paths, read-only, in a future root. Cover what is hidden.

    ``prepare`` is called while the new root is empty.
    """
    kernel.mount("none", "/", "", MS_REC | MS_PRIVATE)
    # Opened first, because everything below the staging folder is about to be covered.
    sources = {place: os.open(path, os.O_PATH) for place, path in shown.items()}
    options = "size=1m,nr_inodes=1k,mode=755"
    kernel.mount("tmpfs", STAGING, "tmpfs", MS_NOSUID | MS_NODEV, options)
    prepare()
    for path in visible.SYSTEM_FOLDERS:
        if os.path.islink(path):
            os.symlink(os.readlink(path), STAGING + path)
    for place in sorted(sources):  # outer folders before inner ones
        _bind_read_only(sources[place], STAGING + place, device=place in visible.DEVICES)
    for path in hidden:
        kernel.mount("tmpfs", STAGING + path, "tmpfs", MS_NOSUID | MS_NODEV, EMPTY)
        kernel.set_mount_attributes(STAGING + path, _attributes(device=False), recursive=False)


def enter() -> None:
    """Make what was built the root, read-only, and detach the old one."""
    os.chdir(STAGING)
    kernel.pivot_root_here()
    kernel.set_mount_attributes("/", _attributes(device=False), recursive=False)


def mount_scratch(path: str, files_mb: int) -> None:
    options = f"size={files_mb}m,nr_inodes={INODES},mode=1777"
    # No access times: they would reveal programs that change nothing.
    flags = MS_NOSUID | MS_NODEV | kernel.MS_NOATIME
    kernel.mount("tmpfs", path, "tmpfs", flags, options)


def scratch_state() -> object:
    """Return a state that differs from a clean folder's if a program has changed the folder."""
    room, folder = os.statvfs(SCRATCH), os.stat(SCRATCH)
    return room.f_bfree, room.f_ffree, folder.st_mode, folder.st_ctime_ns, folder.st_mtime_ns


def renew_scratch(files_mb: int) -> None:
    """Replace the folder in one step, however deep or full it is. Inode numbers restart."""
    kernel.unmount(SCRATCH)
    mount_scratch(SCRATCH, files_mb)


def _bind_read_only(source: int, target: str, *, device: bool) -> None:
    origin = f"/proc/self/fd/{source}"
    if os.path.isdir(origin):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
    kernel.mount(origin, target, "", MS_BIND | MS_REC)
    kernel.set_mount_attributes(target, _attributes(device=device), recursive=True)
    os.close(source)


def _attributes(*, device: bool) -> int:
    attributes = kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NOSUID
    return attributes if device else attributes | kernel.MOUNT_ATTR_NODEV
