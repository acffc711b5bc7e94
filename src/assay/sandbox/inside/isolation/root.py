"""Enter namespaces, and a root folder that holds only what Python needs.

Where an environment allows it, programs also get a loopback network, for tests that start a server
and talk to it, and a /proc with their own processes and the machine's figures.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Container

from . import kernel, visible
from .kernel import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_REC

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
# What psutil reads: processors, memory and load. Nothing about other processes.
FIGURES = ("cpuinfo", "loadavg", "meminfo", "stat", "uptime")
PROC_FLAGS = MS_NOSUID | MS_NODEV | MS_NOEXEC
HOSTS = "127.0.0.1 localhost\n"
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
# A closed connection must not keep its port from the next program, nor tell it anything.
REMEMBERED = "/proc/sys/net/ipv4/tcp_max_tw_buckets"


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
        switch_on_loopback(STAGING)
    os.makedirs(STAGING + PROC)
    mount_proc(STAGING + PROC, whole="figures" in allowed)
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


def switch_on_loopback(root: str) -> None:
    """Start the loopback device of a new network namespace. ``root`` is the future root folder."""
    import fcntl  # costs every fork pages, which workers without a loopback need not pay for
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
    with open(REMEMBERED, "w") as setting:
        setting.write("0")
    os.makedirs(f"{root}/etc", exist_ok=True)
    with open(f"{root}/etc/hosts", "w") as hosts:
        hosts.write(HOSTS)


def mount_proc(target: str, *, whole: bool) -> None:
    """Mount /proc in a folder of the future root, for the keeper, which watches the processes.

    Without ``whole``, the machine's figures are left out. In a user namespace the kernel allows a
    whole /proc for programs only where one is visible already.
    """
    kernel.mount("proc", target, "proc", PROC_FLAGS, "" if whole else "subset=pid")


def mount_proc_for_program() -> None:
    """Mount /proc in the pid namespace of a program. Its first process is not shown."""
    kernel.mount("proc", PROC, "proc", PROC_FLAGS, "hidepid=2")
    cover_all_but_figures(PROC)


def cover_all_but_figures(target: str) -> None:
    """Hide all of a /proc except processes and the machine's figures."""
    for entry in os.scandir(target):
        if entry.name.isdecimal() or entry.name in FIGURES or entry.is_symlink():
            continue
        if entry.is_dir():
            kernel.mount("tmpfs", entry.path, "tmpfs", PROC_FLAGS, EMPTY)
        else:
            kernel.mount(os.devnull, entry.path, "", MS_BIND)
            covered = kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NODEV
            kernel.set_mount_attributes(entry.path, covered, recursive=False)


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
