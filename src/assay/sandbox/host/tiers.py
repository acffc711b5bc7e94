"""List the tiers of the process sandbox, strongest first, with their guarantees and gaps."""

from __future__ import annotations

from dataclasses import dataclass, replace

# What a verdict's integrity means, in every kind of sandbox.
SEPARATED = (
    "tests in a separate process (integrity: separated): the program can neither read them nor "
    "forge their verdict"
)
SHARED = (
    "tests in the program's interpreter (integrity: shared): the program can forge their verdict"
)
COMMON = (
    "no network",
    "no privileges, dangerous system calls refused",
    "limits on CPU, wall time, memory, processes, files and output",
    "all processes killed at the end, nothing left for the next program",
    "a program's memory, files and processes hold no data of other programs, tests or references",
    SEPARATED,
    "all processes end when assay ends, even if it is killed",
)
OWN_ROOT = "no host files except the system's and Python's, read-only"
SIDE_CHANNELS = (
    "side channels: timing, load, and numbers that the kernel counts for the whole machine "
    "(inodes of pipes and sockets, socket cookies)"
)
# Gaps where no cgroup is available.
WATCHED = (
    "memory and CPU time of a program's processes are checked 50 times per second, not limited by "
    "the kernel",
    "SIGCHLD is never delivered, because children that are not waited for would disappear "
    "uncounted",
)
HOST_NUMBERS = "process ids and inode numbers are the host's, and count what others create there"


@dataclass(frozen=True, slots=True)
class Tier:
    """A strength of isolation. ``remedy`` says what a machine needs for it."""

    name: str
    guarantees: tuple[str, ...]
    gaps: tuple[str, ...]
    remedy: str


CONTAINER = Tier(
    "container",
    (
        *COMMON,
        "no host files at all",
        "a separate user",
        "memory limited by the container's cgroup, and checked 50 times per second",
    ),
    (
        SHARED,
        SIDE_CHANNELS,
        WATCHED[1],
        "process ids and inode numbers are the container's, and reveal how many processes and "
        "files earlier programs created",
        "no sockets at all, not even between a program's own processes",
    ),
    "a container runtime (docker or podman) and 'assay sandbox build-image'",
)
PODMAN = replace(
    CONTAINER,
    name="podman",
    gaps=(*CONTAINER.gaps, "the number of files is limited by the container's memory only"),
)
TIERS = {
    tier.name: tier
    for tier in (
        Tier(
            "root",
            (*COMMON, OWN_ROOT, "a separate user"),
            (SHARED, SIDE_CHANNELS),
            "run as root on Linux 5.12 or later, outside of a container or in a privileged one",
        ),
        Tier(
            "user",
            (*COMMON, OWN_ROOT),
            (SHARED, SIDE_CHANNELS),
            "run as an ordinary user on Linux 5.12 or later where user namespaces are allowed "
            "(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
            "kernel.apparmor_restrict_unprivileged_userns; in Docker "
            "--security-opt seccomp=unconfined)",
        ),
        Tier(
            "landlock",
            (*COMMON, "host files outside the system's and Python's cannot be opened"),
            (
                SHARED,
                SIDE_CHANNELS,
                HOST_NUMBERS,
                "names, sizes and times of host files can be seen (stat)",
                "each file is limited, but not their total size",
                "no sockets at all, not even between a program's own processes",
            ),
            "Linux 6.12 or later with Landlock switched on (lsm=landlock,...)",
        ),
    )
}
