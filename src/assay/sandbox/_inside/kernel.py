"""System calls that Python has no function for."""

from __future__ import annotations

import ctypes
import os
import signal

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 0x1000, 0x4000, 0x40000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4
MNT_DETACH = 2
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
CAPABILITY_VERSION_3 = 0x20080522
# Calls since Linux 5.1 have one number on all architectures; pivot_root is older than that.
SYS_MOUNT_SETATTR = 442
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

_libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> int:
    """A function of the C library; its error as OSError."""
    result = int(getattr(_libc, name)(*arguments))
    if result == -1:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{name}: {os.strerror(errno)}")
    return result


def syscall(what: str, number: int, *arguments: object) -> int:
    """A system call by number; its error as OSError."""
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if result == -1:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{what}: {os.strerror(errno)}")
    return result


def prctl(option: int, value: int) -> None:
    call(
        "prctl",
        option,
        ctypes.c_ulong(value),
        ctypes.c_ulong(0),
        ctypes.c_ulong(0),
        ctypes.c_ulong(0),
    )


def die_with_parent() -> None:
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def unshare(flags: int) -> None:
    call("unshare", flags)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    call(
        "mount", source.encode(), target.encode(), kind.encode() or None,
        ctypes.c_ulong(flags), options.encode() or None,
    )  # fmt: skip


def unmount(target: str) -> None:
    call("umount2", target.encode(), MNT_DETACH)


def set_mount_attributes(path: str, attributes: int, recursive: bool) -> None:
    flags = AT_RECURSIVE if recursive else 0
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    syscall(
        "mount_setattr", SYS_MOUNT_SETATTR, AT_FDCWD, path.encode(), flags, wanted,
        ctypes.sizeof(wanted),
    )  # fmt: skip


def pivot_root_here() -> None:
    """Make the working directory the root and let go of the old one."""
    syscall("pivot_root", SYS_PIVOT_ROOT[os.uname().machine], b".", b".")
    unmount(".")
    os.chdir("/")


def drop_privileges(uid: int | None) -> None:
    """Give up every capability for good, also across exec, and become user ``uid`` if given."""
    with open("/proc/self/status") as status:
        bounding = next(int(line.split()[1], 16) for line in status if line.startswith("CapBnd"))
    for capability in range(bounding.bit_length()):
        # Without CAP_SETPCAP there is nothing that NO_NEW_PRIVS would not also prevent.
        if bounding >> capability & 1 and _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == -1:
            break
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    call("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    call("capset", (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)())
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_DUMPABLE, 0)  # no program opens our descriptors through /proc
