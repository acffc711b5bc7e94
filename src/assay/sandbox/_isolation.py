"""Kernel isolation of the calling process: namespaces, a root of its own, no privileges.

Runs in the sandbox's own interpreter: standard library only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
CAPABILITY_VERSION_3 = 0x20080522
# The new system calls have one number on all architectures; pivot_root is older than that.
SYS_MOUNT_SETATTR = 442
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}

NOBODY = 65534
STAGING = "/tmp"  # exists everywhere; covered only in our own mount namespace
SYSTEM_FOLDERS = ("/usr", "/lib", "/lib32", "/lib64", "/bin")
DEVICES = ("null", "zero", "full", "random", "urandom")

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) == -1:
        _raise(name)


def _syscall(what: str, number: int, *arguments: object) -> None:
    if _libc.syscall(ctypes.c_long(number), *arguments) == -1:
        _raise(what)


def _raise(what: str) -> None:
    errno = ctypes.get_errno()
    raise OSError(errno, f"{what}: {os.strerror(errno)}")


def die_with_parent() -> None:
    _call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def enter_namespaces() -> None:
    """New mount, network, IPC and host-name namespaces; children get a new pid namespace.

    Root needs no user namespace for that, anybody else gets the right to it from one.
    """
    flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS
    if _is_full_root():
        _call("unshare", flags)
    else:
        _enter_user_namespace(flags)


def enter_private_root(files_mb: int) -> None:
    """Leave the host's files: read-only system and Python folders, an own /proc, a small /tmp."""
    _mount("none", "/", "", MS_REC | MS_PRIVATE)
    # Held open first: whatever lies below the staging folder is about to be covered.
    sources = {path: os.open(path, os.O_PATH) for path in _visible_paths()}
    _mount("tmpfs", STAGING, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=1k,mode=755")
    for path in SYSTEM_FOLDERS:
        if os.path.islink(path):
            os.symlink(os.readlink(path), STAGING + path)
    for path, source in sources.items():
        _bind_read_only(source, STAGING + path)
    os.makedirs(STAGING + "/proc")
    _mount("proc", STAGING + "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid")
    os.makedirs(STAGING + "/tmp")
    scratch = f"size={files_mb}m,nr_inodes=4k,mode=1777"
    _mount("tmpfs", STAGING + "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, scratch)
    os.symlink("/tmp", STAGING + "/dev/shm")
    os.chdir(STAGING)
    _syscall("pivot_root", SYS_PIVOT_ROOT[os.uname().machine], b".", b".")
    _call("umount2", b".", MNT_DETACH)
    os.chdir("/")
    _set_read_only("/", recursive=False)


def drop_privileges() -> None:
    """Become nobody, and give up every capability for good, also across exec."""
    if _is_full_root():
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        _call("prctl", PR_SET_DUMPABLE, 1, 0, 0, 0)  # a change of uid hides /proc/self from itself
        # Processes are counted per user and user namespace: nobody's samples must not add up.
        _enter_user_namespace()
    with open("/proc/self/status") as status:
        bounding = next(int(line.split()[1], 16) for line in status if line.startswith("CapBnd"))
    for capability in range(bounding.bit_length()):
        if bounding >> capability & 1:
            _call("prctl", PR_CAPBSET_DROP, capability, 0, 0, 0)
    _call("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    _call("capset", (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)())
    _call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # Otherwise a program of the same uid could open the supervisor's descriptors through /proc.
    _call("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0)


def _is_full_root() -> bool:
    """Whether this is root with other users to change to, not the sole user of a namespace."""
    with open("/proc/self/uid_map") as lines:
        mapped = [line.split() for line in lines]
    return os.geteuid() == 0 and any(
        int(first) <= NOBODY < int(first) + int(count) for first, _, count in mapped
    )


def _enter_user_namespace(with_others: int = 0) -> None:
    uid, gid = os.geteuid(), os.getegid()
    _call("unshare", CLONE_NEWUSER | with_others)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{NOBODY} {uid} 1")
    _write("/proc/self/gid_map", f"{NOBODY} {gid} 1")


def _visible_paths() -> list[str]:
    folders = [path for path in SYSTEM_FOLDERS if os.path.isdir(path) and not os.path.islink(path)]
    for prefix in (sys.base_prefix, sys.base_exec_prefix):
        real = os.path.realpath(prefix)
        if not any(real == folder or real.startswith(folder + "/") for folder in folders):
            folders.append(real)
    files = [f"/dev/{name}" for name in DEVICES] + ["/etc/ld.so.cache"]
    return folders + [path for path in files if os.path.exists(path)]


def _bind_read_only(source: int, target: str) -> None:
    origin = f"/proc/self/fd/{source}"
    if os.path.isdir(origin):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
    _mount(origin, target, "", MS_BIND | MS_REC)
    _set_read_only(target, recursive=True)
    os.close(source)


def _set_read_only(path: str, recursive: bool) -> None:
    attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID
    if not path.startswith(STAGING + "/dev/"):
        attributes |= MOUNT_ATTR_NODEV
    flags = AT_RECURSIVE if recursive else 0
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    _syscall(
        "mount_setattr", SYS_MOUNT_SETATTR, AT_FDCWD, path.encode(), flags, wanted,
        ctypes.sizeof(wanted),
    )  # fmt: skip


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    _call(
        "mount", source.encode(), target.encode(), kind.encode() or None,
        ctypes.c_ulong(flags), options.encode() or None,
    )  # fmt: skip


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
