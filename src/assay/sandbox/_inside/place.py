"""Where programs run: the three tiers, each set up once for a worker.

Two processes make a worker: the zygote, which forks the programs and holds no privilege; and the
keeper beside it, which renews the scratch folder and which no program can reach. ``root`` and
``user`` give them namespaces of their own, the zygote being pid 1. ``landlock`` is for containers
that forbid namespaces: the zygote adopts orphans, and every program confines itself.

Imports are few on purpose (no dataclasses, shutil, tempfile): every page of the zygote makes every
fork dearer.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
from collections.abc import Callable
from typing import Any, NoReturn

from . import kernel, landlock, root, seccomp, tree
from .cgroup import TreeLimit, own_kills

SERVERS = 6  # a container's other processes of ours, some of which may not have begun
FIRST_UID = 100_000  # with the worker's pid added: processes are counted per user


class Place:
    """``confine`` is called by each program's process, the rest by the zygote."""

    def __init__(
        self,
        scratch: str,
        scratch_state: Callable[[], object],  # not a clean one's if a program left something
        renew_scratch: Callable[[], None],
        processes: Callable[[], list[int]],
        neighbours: int,  # processes of this user that are not the program's
        limit: TreeLimit | None = None,
        confine: Callable[[], None] = lambda: None,
        kills: Callable[[], int] = lambda: 0,  # for lack of memory, so far
    ) -> None:
        self.scratch = scratch
        self.scratch_state = scratch_state
        self.renew_scratch = renew_scratch
        self.processes = processes
        self.neighbours = neighbours
        self.limit = limit
        self.confine = confine
        self.kills = limit.kills if limit else kills

    def kill_all(self) -> None:
        """All that can be signalled from here was started here."""
        with contextlib.suppress(OSError):
            os.kill(-1, signal.SIGKILL)


def in_namespaces(
    limits: dict[str, Any],
    allowed: list[str],
    *,
    as_root: bool,
    only_zygote: list[int],
    limit_memory: bool,
) -> Place:
    """Returns in the zygote only, which alone keeps the descriptors ``only_zygote``."""
    files_mb = limits["files_mb"]
    limit = None
    if as_root and limit_memory:
        with contextlib.suppress(OSError):  # the watch limits memory where cgroups cannot
            limit = TreeLimit(limits["memory_mb"])
    root.enter_namespaces(through_user_namespace=not as_root)
    keeper = os.getpid()
    renew = _with_keeper(
        lambda: root.renew_scratch(files_mb), limit.remove if limit else lambda: None, only_zygote
    )
    root.enter_private_root(files_mb, allowed)
    kernel.drop_privileges(FIRST_UID + keeper if as_root else None)
    kernel.die_with_parent()
    places = landlock.open_places(("/",), (root.SCRATCH_RULE, *root.DEVICES))
    landlock.restrict_files(places, alone=False)
    seccomp.install(network=True, foreign_files=False)

    def scratch_state() -> object:
        room, folder = os.statvfs(root.SCRATCH), os.stat(root.SCRATCH)
        return room.f_bfree, room.f_ffree, folder.st_mode, folder.st_ctime_ns

    return Place(root.SCRATCH, scratch_state, renew, tree.everyone_else, neighbours=2, limit=limit)


def by_landlock(only_zygote: list[int], kills: Callable[[], int] = lambda: 0) -> Place:
    """In the host's namespaces: the program sees the host's system folders, read-only."""
    if landlock.version() < landlock.WITH_SCOPES:
        raise OSError("Landlock of Linux 6.12 or later is needed")
    scratch = f"/tmp/assay-{os.getpid()}-{os.urandom(8).hex()}"
    os.mkdir(scratch, 0o700)

    def remove() -> None:
        _empty(scratch)
        os.rmdir(scratch)

    renew = _with_keeper(lambda: _empty(scratch), remove, only_zygote)
    places = landlock.open_places(root.visible_paths(), (scratch, *root.DEVICES))
    uid = None
    if os.geteuid() == 0 and all(map(_others_can_enter, root.python_folders())):
        uid = FIRST_UID + os.getpid()
        os.chown(scratch, uid, uid)
    neighbours = tree.processes_of(os.getuid()) if uid is None else 1
    kernel.drop_privileges(uid)
    kernel.die_with_parent()
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    landlock.restrict_signals()
    seccomp.install(network=False, foreign_files=uid is None)

    def confine() -> None:
        kernel.die_with_parent()
        landlock.restrict_files(places, alone=True)

    return Place(
        scratch=scratch,
        scratch_state=lambda: (os.stat(scratch).st_mode, os.stat(scratch).st_ctime_ns),
        renew_scratch=renew,
        processes=tree.descendants,
        neighbours=neighbours,
        confine=confine,
        kills=kills,
    )


def in_container(only_zygote: list[int]) -> Place:
    """As by Landlock, where somebody else has built the walls and limits the memory of all."""
    place = by_landlock(only_zygote, own_kills())
    confine = place.confine

    def confine_as_victim() -> None:
        # Should memory run out, the program is to be killed, not its judge.
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # or its own /proc/self were closed to it
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
        confine()

    place.confine = confine_as_victim
    place.neighbours += SERVERS
    return place


def _with_keeper(
    renew: Callable[[], None], leave: Callable[[], None], only_zygote: list[int]
) -> Callable[[], None]:
    """Fork. The parent becomes the keeper, the child gets a way to ask it to ``renew``."""
    asked, ask = os.pipe()
    told, tell = os.pipe()
    if os.fork() != 0:
        for descriptor in (*only_zygote, ask, told):
            os.close(descriptor)
        _keep(asked, tell, renew, leave)
    os.close(asked)
    os.close(tell)

    def request() -> None:
        os.write(ask, b"r")
        if not os.read(told, 1):
            raise EOFError

    return request


def _keep(asked: int, tell: int, renew: Callable[[], None], leave: Callable[[], None]) -> NoReturn:
    """Ends when the zygote does, since only that holds the other end."""
    try:
        while os.read(asked, 1):
            renew()
            os.write(tell, b"d")
        os.close(tell)
        os.wait()
    finally:
        leave()
        os._exit(0)


def _others_can_enter(path: str) -> bool:
    while path != "/":
        if not os.stat(path).st_mode & stat.S_IXOTH:
            return False
        path = os.path.dirname(path)
    return True


def _empty(folder: str) -> None:
    """Delete all in a folder, however deep: deep folders are first brought to the top."""
    os.chmod(folder, 0o700)
    for name in os.listxattr(folder):
        os.removexattr(folder, name)
    number = 0
    while entries := list(os.scandir(folder)):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
                continue
            os.chmod(entry.path, 0o700)
            for inner in list(os.scandir(entry.path)):
                number += 1
                os.rename(inner.path, f"{folder}/.{number}.deleted")
            os.rmdir(entry.path)
