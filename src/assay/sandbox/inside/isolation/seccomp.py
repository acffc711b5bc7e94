"""Filter the system calls that a program may not make.

This is a deny-list that no unknown call passes. Calls of another architecture kill the process, and
calls newer than this table do not exist. Python and its libraries have alternatives for those.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct

from . import kernel

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
NEWEST_KNOWN = 450

# name: number on x86_64, number on aarch64 (None: that architecture has no such call)
Calls = dict[str, tuple[int | None, int | None]]
FORBIDDEN: Calls = {
    # other processes' memory, limits and priorities
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448), "setpriority": (141, 140), "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119), "sched_setaffinity": (203, 122), "sched_setattr": (314, 274),
    "ioprio_set": (251, 30), "migrate_pages": (256, 238), "move_pages": (279, 239),
    # what outlives a process
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190),
    "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180),
    "mq_unlink": (241, 181), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # memory that no limit of a process counts
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    # what others do with files
    "mincore": (27, 232), "fadvise64": (221, 223),
    "inotify_init": (253, None), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    # namespaces and mounts; setns needs a capability that no program has
    "unshare": (272, 97), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442),
    # the kernel's large surfaces
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "io_setup": (206, 0), "io_submit": (209, 2), "vmsplice": (278, 75), "fanotify_init": (300, 262),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "modify_ldt": (154, None),
    "openat2": (437, 437), "personality": (135, 92),
    "lookup_dcookie": (212, 18), "remap_file_pages": (216, 234),
    # the machine
    "acct": (163, 89), "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142),
    "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None),
    "ioperm": (173, None), "init_module": (175, 105), "delete_module": (176, 106),
    "finit_module": (313, 273), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "settimeofday": (164, 170),
    "adjtimex": (159, 171), "clock_settime": (227, 112), "clock_adjtime": (305, 266),
    "syslog": (103, 116), "vhangup": (153, 58), "nfsservctl": (180, 42), "uselib": (134, None),
}  # fmt: skip

# Landlock does not restrict these. Where the host's files are accessible, a process that may write
# one may set its attributes, and a process of the file's owner may do all of this.
CHANGES_BY_WRITERS: Calls = {
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16),
}  # fmt: skip
CHANGES_BY_OWNERS: Calls = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None),
    "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    **CHANGES_BY_WRITERS,
}  # fmt: skip

# Calls that a fork server needs to set a program up, and that the program may not make.
FORK_SERVERS = ("mount", "mount_setattr")

CLONE, CLONE3, SOCKET, PRLIMIT = (56, 220), (435, 435), (41, 198), (302, 261)
PREADV2, OPEN, OPENAT = (327, 286), (2, None), (257, 56)
O_TMPFILE = 0x400000
PRCTL, SIGACTION, SETSOCKOPT = (157, 167), (13, 134), (54, 208)
# Every CLONE_NEW*, including cgroup. Also pidfds, whose inode numbers count all processes ever.
CLONE_FLAGS = 0x7E020000 | 0x02000000 | kernel.CLONE_PIDFD
AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
SOL_SOCKET, SO_SNDBUF, SO_SNDBUFFORCE = 1, 7, 32
# Process descriptors, and F_NOTIFY of fcntl, which shows what another program does with files.
GETSOCKOPT, FCNTL, CLOCK_GETTIME = (55, 209), (72, 25), (228, 113)
SO_PEERPIDFD, F_NOTIFY, OTHER_CLOCK = 77, 1026, 0x80000000
# Mount numbers are never reused, so they show that a scratch folder was mounted again. Also memory
# from a pool of the machine, which no limit counts.
STATX, MMAP, STATX_MNT_ID_UNIQUE, MAP_HUGETLB = (332, 291), (9, 222), 0x4000, 0x40000

LOAD, JUMP_EQ, JUMP_GT, JUMP_SET, RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
ALLOW, KILL = 0x7FFF0000, 0x80000000
DENY, MISSING = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
UNSUPPORTED = 0x00050000 | errno.EOPNOTSUPP
IGNORED = 0x00050000  # looks as if it had been done
NUMBER, ARCHITECTURE = 0, 4
ARGUMENT_0, ARGUMENT_1, ARGUMENT_2, ARGUMENT_3, ARGUMENT_5 = 16, 24, 32, 40, 56
SECCOMP_SET_MODE_FILTER = 1
SYS_SECCOMP = {"x86_64": 317, "aarch64": 277}

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, value


class Filter:
    """A filter that binds the process which installs it, and all it starts, for good."""

    def __init__(self, program: list[Instruction]) -> None:
        packed = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
        self._code = ctypes.create_string_buffer(packed, len(packed))

        class Whole(ctypes.Structure):
            _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

        self._whole = Whole(len(program), ctypes.cast(self._code, ctypes.c_void_p))
        self._number = SYS_SECCOMP[os.uname().machine]

    def install(self) -> None:
        whole = ctypes.byref(self._whole)
        kernel.syscall("seccomp", self._number, SECCOMP_SET_MODE_FILTER, 0, whole)


def install(
    *, families: tuple[int, ...], watched: bool, changes: Calls | None = None, forks: bool = False
) -> None:
    """Bind this process (see ``build``)."""
    machine = os.uname().machine
    Filter(
        build(machine, families=families, watched=watched, changes=changes or {}, forks=forks)
    ).install()


def build(
    machine: str, *, families: tuple[int, ...], watched: bool, changes: Calls, forks: bool
) -> list[Instruction]:
    """Return the filter's instructions.

    ``families``: of sockets that are harmless, being in a network namespace of their own.
    ``watched``: no cgroup counts CPU time and the kernel's memory. Then children that nobody waits
    for must not vanish uncounted, and no socket may hold more than the default.
    ``changes``: to files of the host, if these are in reach.
    ``forks``: for a fork server, whose programs also get ``build_last``.
    """
    column, audit = ARCHITECTURES[machine]
    forbidden = {name: n for name, n in FORBIDDEN.items() if not forks or name not in FORK_SERVERS}
    forbidden |= changes
    numbers = sorted(number for n in forbidden.values() if (number := n[column]) is not None)
    program = [
        (LOAD, 0, 0, ARCHITECTURE), (JUMP_EQ, 1, 0, audit), (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER), (JUMP_GT, 0, 1, NEWEST_KNOWN), (RETURN, 0, 0, MISSING),
        # preadv2: no flags, which show whether another program has read a file
        (JUMP_EQ, 0, 4, PREADV2[column]), (LOAD, 0, 0, ARGUMENT_5), (JUMP_EQ, 1, 0, 0),
        (RETURN, 0, 0, DENY), (RETURN, 0, 0, ALLOW),
        # open: no unnamed files, which use an inode number and leave no trace
        (JUMP_EQ, 0, 4, OPENAT[column]), (LOAD, 0, 0, ARGUMENT_2), (JUMP_SET, 0, 1, O_TMPFILE),
        (RETURN, 0, 0, UNSUPPORTED), (RETURN, 0, 0, ALLOW),
        *(
            ((JUMP_EQ, 0, 4, number), (LOAD, 0, 0, ARGUMENT_1), (JUMP_SET, 0, 1, O_TMPFILE),
             (RETURN, 0, 0, UNSUPPORTED), (RETURN, 0, 0, ALLOW))
            if (number := OPEN[column]) is not None else ()
        ),
        (JUMP_EQ, 0, 4, GETSOCKOPT[column]), (LOAD, 0, 0, ARGUMENT_2),
        (JUMP_EQ, 0, 1, SO_PEERPIDFD), (RETURN, 0, 0, DENY), (RETURN, 0, 0, ALLOW),
        (JUMP_EQ, 0, 4, FCNTL[column]), (LOAD, 0, 0, ARGUMENT_1),
        (JUMP_EQ, 0, 1, F_NOTIFY), (RETURN, 0, 0, DENY), (RETURN, 0, 0, ALLOW),
        (JUMP_EQ, 0, 4, STATX[column]), (LOAD, 0, 0, ARGUMENT_3),
        (JUMP_SET, 0, 1, STATX_MNT_ID_UNIQUE), (RETURN, 0, 0, DENY), (RETURN, 0, 0, ALLOW),
        (JUMP_EQ, 0, 4, MMAP[column]), (LOAD, 0, 0, ARGUMENT_3),
        (JUMP_SET, 0, 1, MAP_HUGETLB), (RETURN, 0, 0, DENY), (RETURN, 0, 0, ALLOW),
        # clock_gettime: no clocks of other processes
        (JUMP_EQ, 0, 4, CLOCK_GETTIME[column]), (LOAD, 0, 0, ARGUMENT_0),
        (JUMP_SET, 0, 1, OTHER_CLOCK), (RETURN, 0, 0, DENY), (RETURN, 0, 0, ALLOW),
        # prlimit: of oneself only
        (JUMP_EQ, 0, 4, PRLIMIT[column]), (LOAD, 0, 0, ARGUMENT_0), (JUMP_EQ, 1, 0, 0),
        (RETURN, 0, 0, DENY), (RETURN, 0, 0, ALLOW),
        # socket: known families only, none where the host's network is accessible
        (JUMP_EQ, 0, 3 + len(families), SOCKET[column]), (LOAD, 0, 0, ARGUMENT_0),
        *((JUMP_EQ, len(families) - i, 0, family) for i, family in enumerate(families)),
        (RETURN, 0, 0, DENY), (RETURN, 0, 0, ALLOW),
    ]  # fmt: skip
    if watched:
        program += [
            (JUMP_EQ, 0, 4, SIGACTION[column]), (LOAD, 0, 0, ARGUMENT_0),
            (JUMP_EQ, 0, 1, signal.SIGCHLD), (RETURN, 0, 0, IGNORED), (RETURN, 0, 0, ALLOW),
            (JUMP_EQ, 0, 7, SETSOCKOPT[column]), (LOAD, 0, 0, ARGUMENT_1),
            (JUMP_EQ, 0, 4, SOL_SOCKET), (LOAD, 0, 0, ARGUMENT_2),
            (JUMP_EQ, 1, 0, SO_SNDBUF), (JUMP_EQ, 0, 1, SO_SNDBUFFORCE),
            (RETURN, 0, 0, DENY), (RETURN, 0, 0, ALLOW),
        ]  # fmt: skip
    for number in numbers:
        program += [(JUMP_EQ, 0, 1, number), (RETURN, 0, 0, DENY)]
    return [*program, *([] if forks else _last(column)), (RETURN, 0, 0, ALLOW)]


def build_last(machine: str) -> list[Instruction]:
    """Return what a fork server's programs may not do, in addition to its own filter."""
    column, _ = ARCHITECTURES[machine]
    program: list[Instruction] = [(LOAD, 0, 0, NUMBER)]
    for name in FORK_SERVERS:
        if (number := FORBIDDEN[name][column]) is not None:
            program += [(JUMP_EQ, 0, 1, number), (RETURN, 0, 0, DENY)]
    return [*program, *_last(column), (RETURN, 0, 0, ALLOW)]


def _last(column: int) -> list[Instruction]:
    return [
        (JUMP_EQ, 0, 1, CLONE3[column]), (RETURN, 0, 0, MISSING),
        # clone: no new namespaces
        (JUMP_EQ, 0, 4, CLONE[column]), (LOAD, 0, 0, ARGUMENT_0),
        (JUMP_SET, 0, 1, CLONE_FLAGS), (RETURN, 0, 0, DENY), (RETURN, 0, 0, ALLOW),
        # prctl: no memory that a watch cannot inspect
        (JUMP_EQ, 0, 4, PRCTL[column]), (LOAD, 0, 0, ARGUMENT_0),
        (JUMP_EQ, 0, 1, kernel.PR_SET_DUMPABLE), (RETURN, 0, 0, DENY), (RETURN, 0, 0, ALLOW),
    ]  # fmt: skip
