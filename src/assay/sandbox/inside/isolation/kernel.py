"""Call the kernel where Python has no function for it."""

from __future__ import annotations

import ctypes
import os
import signal

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_NOATIME = 2, 4, 8, 0x400
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4
MNT_DETACH = 2
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
CLONE_VM, CLONE_FILES, CLONE_PARENT, CLONE_PIDFD = 0x100, 0x400, 0x8000, 0x1000
CLONE_CHILD_SETTID, CLONE_CHILD_CLEARTID = 0x01000000, 0x00200000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_GET_SECUREBITS = 1, 4, 24, 27
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_GET_TID_ADDRESS = 36, 38, 40
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
CAPABILITY_VERSION_3 = 0x20080522
# Calls since Linux 5.1 have one number on all architectures; pivot_root is older than that.
SYS_MOUNT_SETATTR = 442
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
SYS_CLONE = {"x86_64": 56, "aarch64": 220}
SYS_GETPID = {"x86_64": 39, "aarch64": 172}
CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SETPCAP, CAP_SYS_PTRACE, CAP_SYS_ADMIN = 5, 6, 7, 8, 19, 21

STACK = 1 << 14

_libc = ctypes.CDLL(None, use_errno=True)
_CAPABILITIES = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
_NONE = (ctypes.c_uint32 * 6)()


def call(name: str, *arguments: object) -> int:
    """Call a function of the C library. Raise its error as OSError."""
    return _checked(name, getattr(_libc, name)(*arguments))


def syscall(what: str, number: int, *arguments: object) -> int:
    """Make a system call by number. Raise its error as OSError."""
    return _checked(what, _libc.syscall(ctypes.c_long(number), *arguments))


def _checked(what: str, result: int) -> int:
    if result == -1:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{what}: {os.strerror(errno)}")
    return int(result)


def prctl(option: int, value: int) -> None:
    call("prctl", option, *(ctypes.c_ulong(number) for number in (value, 0, 0, 0)))


def die_with_parent() -> None:
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def unshare(flags: int) -> None:
    call("unshare", flags)


def enter_namespace(descriptor: int, kind: int) -> None:
    call("setns", descriptor, kind)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    call(
        "mount", source.encode(), target.encode(), kind.encode() or None,
        ctypes.c_ulong(flags), options.encode() or None,
    )  # fmt: skip


def unmount(target: str) -> None:
    call("umount2", target.encode(), MNT_DETACH)


def set_mount_attributes(path: str, attributes: int, recursive: bool) -> None:
    flags = AT_RECURSIVE if recursive else 0
    change = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    syscall(
        "mount_setattr", SYS_MOUNT_SETATTR, AT_FDCWD, path.encode(), flags, change,
        ctypes.sizeof(change),
    )  # fmt: skip


def pivot_root_here() -> None:
    """Make the working directory the root and detach the old one."""
    syscall("pivot_root", SYS_PIVOT_ROOT[os.uname().machine], b".", b".")
    unmount(".")
    os.chdir("/")


def drop_bounding_set() -> None:
    """Make sure that no program started from here can ever gain a capability by exec."""
    bounding = _capabilities("CapBnd")
    for capability in range(bounding.bit_length()):
        # Without CAP_SETPCAP there is nothing that NO_NEW_PRIVS would not also prevent.
        if bounding >> capability & 1 and _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == -1:
            break
    call("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def _capabilities(kind: str) -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1], 16) for line in status if line.startswith(kind))


def keep_capabilities(*numbers: int) -> None:
    """Give up all capabilities except these."""
    bits = sum(1 << number for number in numbers) & (_capabilities("CapPrm") if numbers else 0)
    low, high = bits & 0xFFFFFFFF, bits >> 32
    # Two sets of (effective, permitted, inheritable): the low 32 capabilities, then the high ones.
    call("capset", _CAPABILITIES, (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0))


def drop_capabilities() -> None:
    """Give up all capabilities, as fast as possible."""
    call("capset", _CAPABILITIES, _NONE)


def loses_capabilities() -> bool:
    """Return whether this process loses its capabilities when it becomes another user."""
    return int(_libc.prctl(PR_GET_SECUREBITS, 0, 0, 0, 0)) == 0


def become(uid: int) -> None:
    """Become a user without any rights."""
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def drop_privileges(uid: int | None) -> None:
    """Give up every capability for good, also across exec, and become user ``uid`` if given."""
    drop_bounding_set()
    if uid is not None:
        os.setgroups([])
        become(uid)
    keep_capabilities()
    prctl(PR_SET_DUMPABLE, 0)  # no program opens our descriptors through /proc


class NamespaceInit:
    """The first process of each pid namespace, which sleeps until all in it are killed.

    It shares this process's memory and calls ``pause`` of the C library on its own stack. That
    costs 50 us, while a fork of Python costs 600. Zombies wait in its namespace until that ends;
    then the kernel adds their CPU time to its own.
    """

    def __init__(self, proc: int) -> None:
        import mmap

        self._proc = proc  # a descriptor of /proc
        self._memory = mmap.mmap(-1, STACK)
        top = ctypes.addressof(ctypes.c_char.from_buffer(self._memory)) + STACK
        self._top = ctypes.c_void_p(top & ~15)
        self._function = ctypes.cast(_libc.pause, ctypes.c_void_p)
        self._clone = ctypes.PyDLL(None, use_errno=True).clone
        self._outer = os.open("self/ns/pid", os.O_RDONLY, dir_fd=proc)

    def start(self) -> tuple[int, int]:
        """Return its pid and its namespace's descriptor. The previous one must have ended."""
        unshare(CLONE_NEWPID)
        try:
            # The descriptors are shared too: copies would stay open for as long as it lives.
            flags = CLONE_VM | CLONE_FILES | signal.SIGCHLD
            pid = _checked("clone", self._clone(self._function, self._top, flags, None))
            # Not by its pid: a process that cannot be inspected does not show its namespaces.
            name = "self/ns/pid_for_children"
            return pid, os.open(name, os.O_RDONLY, dir_fd=self._proc)
        finally:
            enter_namespace(self._outer, CLONE_NEWPID)


class Forker:
    """A fork of this process that its parent gets, so that nothing of the child is known here.

    ``os.fork`` would make this process the parent, which then has to hold pids and exit codes.
    """

    def __init__(self, flags: int, *, hooks: bool) -> None:
        """Set up forking. ``hooks``: whether modules may have registered functions for a fork."""
        machine = os.uname().machine
        self._call = ctypes.PyDLL(None, use_errno=True).syscall
        # Nothing: the pid would stay in freed memory that the next child inherits.
        self._call.restype = None
        self._self = os.getpid(), os.getppid()
        tid = ctypes.c_void_p()
        flags |= CLONE_PARENT | signal.SIGCHLD
        # The C library keeps its thread id, which abort() and raise() use, where this points.
        if _libc.prctl(PR_GET_TID_ADDRESS, ctypes.byref(tid), 0, 0, 0) == 0:
            flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID
        ends = (tid.value or 0, 0) if machine == "x86_64" else (0, tid.value or 0)
        words = (SYS_CLONE[machine], flags, 0, 0, *ends)
        self._clone = [ctypes.c_ulong(word) for word in words]
        self._harmless = [ctypes.c_ulong(SYS_GETPID[machine]), *self._clone[1:]]
        self._after_fork = ctypes.pythonapi.PyOS_AfterFork_Child if hooks else lambda: None

    def is_child(self) -> bool:
        """Fork, and return True in the child.

        A failed fork looks like a child that ends at once.
        """
        self._call(*self._clone)
        if (os.getpid(), os.getppid()) == self._self:
            self._call(*self._harmless)  # overwrites what the call has left on the stack: the pid
            return False
        # There is one thread, and it holds no lock: without hooks there is nothing to repair.
        self._after_fork()
        return True
