"""Set up the tier in which a worker's programs run.

Three processes make a worker. The first one waits outside for its end. The **keeper** takes jobs,
watches programs and holds what they print; no program can reach it. The **zygote** is forked for
every program and never sees anything of one. ``root`` and ``user`` give the three namespaces of
their own, and every program a pid namespace again. ``landlock`` is for containers that
forbid namespaces: the keeper adopts orphans, and every program confines itself.

Imports are few on purpose (no dataclasses, shutil, tempfile): every page of the zygote makes every
fork dearer.
"""

from __future__ import annotations

import _socket
import contextlib
import os
import select
import signal
import stat
import time
from collections.abc import Callable, Iterable
from typing import NoReturn

from ..isolation import cgroup, kernel, landlock, root, seccomp, visible
from ..isolation.kernel import Forker
from ..isolation.tree import Tree
from . import sample
from .messages import Settings
from .place import ANY_CHILD, Landlocked, Namespaces, Place, remove
from .zygote import READY, serve

FIRST_UID = 100_000  # with the worker's pid added: processes are counted per user
OTHERS = 1024  # processes of the same user on the host that may start meanwhile
MANY = 10_000  # processes at a time
LEAVE_S = 2.0  # for a worker to end itself after its harness
WORDS = 500  # of a zygote that cannot start


def in_namespaces(settings: Settings, *, as_root: bool) -> Place:
    """Set up namespaces for the worker, and return in the keeper only."""
    limits, allowed = settings.limits, settings.allowed
    shown, hidden = _visible(settings.private)
    limit = cgroup.open_limit(limits.memory_mb, limits.processes)
    root.enter_namespaces(through_user_namespace=not as_root)
    uid = FIRST_UID + os.getpid() if as_root else None
    _wait_outside(limit)
    root.enter_private_root(shown, hidden, limits.files_mb, allowed)

    with_figures = "figures" in allowed

    def become_zygote(link: int) -> NoReturn:
        own_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY)
        if as_root:
            os.setgroups([])
        rules = landlock.Rules(("/",), (root.SCRATCH_RULE, *visible.DEVICES), alone=False)
        last = seccomp.Filter(seccomp.build_last(os.uname().machine))
        flags = kernel.CLONE_NEWNS if with_figures else 0
        # The kernel drops capabilities when the user changes, unless configured to keep them.
        keeps_capabilities = uid is None or not kernel.loses_capabilities()
        forker = Forker(flags, hooks=bool(settings.imports))
        fork = _forks_victims(forker) if limit else forker.is_child
        if limit:
            limit.enter()
        # A user namespace counts these too: the process outside, keeper, zygote, a program's init.
        sample.limit_worker(limits, limits.processes + (0 if as_root else 4))
        kernel.keep_capabilities(
            kernel.CAP_SYS_ADMIN, kernel.CAP_SETUID, kernel.CAP_SETGID, kernel.CAP_SETPCAP
        )
        kernel.drop_bounding_set()
        seccomp.install(families=_families(allowed), watched=limit is None, forks=with_figures)

        def enter() -> None:
            if with_figures:
                root.mount_proc_for_program()
            os.chdir(root.SCRATCH)
            if uid is not None:
                kernel.become(uid)
            if keeps_capabilities:
                kernel.drop_capabilities()
            if with_figures:
                kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # its own /proc/self; ours stay closed
            rules.enter()
            if with_figures:  # mounts had to be possible until now
                last.install()

        def is_child(namespace: int) -> bool:
            kernel.enter_namespace(namespace, kernel.CLONE_NEWPID)
            if fork():
                return True
            kernel.enter_namespace(own_namespace, kernel.CLONE_NEWPID)
            return False

        serve(link, root.SCRATCH, settings, is_child, enter)

    zygote, link = _fork_zygote(become_zygote)
    kernel.keep_capabilities(kernel.CAP_SYS_ADMIN, kernel.CAP_KILL, kernel.CAP_SYS_PTRACE)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    place = Namespaces(zygote, link, limit, limits.files_mb)
    if not with_figures:  # those have one of their own, which the kernel allows on top of another
        kernel.unmount(root.PROC)  # the place holds it open; programs have none
    return place


def by_landlock(settings: Settings, *, in_container: bool = False) -> Place:
    """Set up Landlock for the worker, and return in the keeper only."""
    if landlock.version() < landlock.WITH_SCOPES:
        raise OSError("Landlock of Linux 6.12 or later is needed")
    limits = settings.limits
    shown, hidden = _visible(settings.private)
    limit = None if in_container else cgroup.open_limit(limits.memory_mb, limits.processes)
    scratch = f"/tmp/assay-{os.getpid()}-{os.urandom(8).hex()}"
    os.mkdir(scratch, 0o700)
    uid = None
    if os.geteuid() == 0 and all(map(_others_can_enter, visible.python_folders())):
        uid = FIRST_UID + os.getpid()
        os.chown(scratch, uid, uid)
    _wait_outside(limit, lambda: remove(scratch))
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)

    def become_zygote(link: int) -> NoReturn:
        if uid is not None:
            os.setgroups([])
        rules = landlock.Rules(
            visible.readable_pieces(shown, hidden),
            (scratch, *visible.DEVICES),
            listed=shown,
            alone=True,
        )
        forker = Forker(0, hooks=bool(settings.imports))
        fork = _forks_victims(forker) if limit or in_container else forker.is_child
        if limit:
            limit.enter()
        most = limits.processes
        if uid is None:  # others of this user count too, and may become more: the keeper watches
            most += Tree().threads_of(os.getuid()) + OTHERS
        sample.limit_worker(limits, most)
        kernel.drop_bounding_set()
        landlock.restrict_signals()
        kernel.keep_capabilities(
            *(() if uid is None else (kernel.CAP_SETUID, kernel.CAP_SETGID, kernel.CAP_KILL))
        )
        seccomp.install(families=(), watched=limit is None, changes=_changes(uid))

        def enter() -> None:
            kernel.die_with_parent()
            if uid is not None:
                kernel.become(uid)
                kernel.drop_capabilities()
            os.chdir(scratch)
            rules.enter()

        serve(link, scratch, settings, lambda _: fork(), enter)

    zygote, link = _fork_zygote(become_zygote)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    place = Landlocked(zygote, link, limit, scratch)
    if in_container:
        place.memory = cgroup.container_events()
    return place


def isolate_oracle(settings: Settings) -> None:
    """Isolate the process that runs tests like the programs, separately from them."""
    limits, tier = settings.limits, settings.tier
    shown, hidden = _visible(())
    if tier in ("root", "user"):
        root.enter_namespaces(through_user_namespace=tier == "user")
        uid = FIRST_UID + os.getpid() if tier == "root" else None
        _wait_outside(None)
        root.enter_private_root(shown, hidden, limits.files_mb, ())
        rules = landlock.Rules(("/",), (root.SCRATCH_RULE, *visible.DEVICES), alone=False)
    else:
        others = os.geteuid() == 0 and all(map(_others_can_enter, visible.python_folders()))
        uid = FIRST_UID + os.getpid() if others else None
        if tier != "container":  # where the first process ends everything
            _wait_outside(None)
        readable = visible.readable_pieces(shown, hidden)
        rules = landlock.Rules(readable, visible.DEVICES, listed=shown, alone=True)
    sample.limit_worker(limits, 0)  # it starts no processes
    kernel.drop_privileges(uid)
    rules.enter()
    seccomp.install(families=(), watched=False, changes=_changes(uid))


def _forks_victims(forker: Forker) -> Callable[[], bool]:
    """Make forks such that lack of memory ends the child, not this process in the same cgroup.

    The child inherits the setting. Setting it in the child would cost each program 0.1 ms.
    """
    score = os.open("/proc/self/oom_score_adj", os.O_RDWR)
    own = os.read(score, 16)

    def fork() -> bool:
        os.pwrite(score, b"1000", 0)
        if forker.is_child():
            return True
        os.pwrite(score, own, 0)
        return False

    return fork


def _visible(private: Iterable[str]) -> tuple[list[str], list[str]]:
    shown = visible.shown_paths()
    hidden = visible.hidden_folders(shown)
    visible.refuse_private(private, shown, hidden)
    return shown, hidden


def _changes(uid: int | None) -> seccomp.Calls:
    """Return the calls by which programs, as this user or another, could change host files."""
    return seccomp.CHANGES_BY_OWNERS if uid is None else seccomp.CHANGES_BY_WRITERS


def _families(allowed: Iterable[str]) -> tuple[int, ...]:
    """Return the allowed socket families. Internet sockets leave counters in a namespace."""
    with_loopback = (seccomp.AF_INET, seccomp.AF_INET6) if "loopback" in allowed else ()
    return (seccomp.AF_UNIX, *with_loopback)


def _wait_outside(limit: cgroup.TreeLimit | None, leave: Callable[[], None] = lambda: None) -> None:
    """Fork, and return in the child. The parent keeps no descriptor and cleans up after it."""
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)  # where no namespace ends with its first process
    child = os.fork()
    if child == 0:
        kernel.die_with_parent()
        return
    # Sent by a harness that no longer waits.
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
    try:
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        # When these close, the harness knows that the worker is gone.
        for descriptor in (0, 1, 2, sample.REPORTS, sample.LINK):
            os.close(descriptor)
        _wait_for(child)
        _end_descendants()
    finally:
        if limit:
            limit.remove()
        leave()
        os._exit(0)


def _wait_for(child: int) -> None:
    """Wait for the child's end. Kill it if it stays after the harness: it may be in a step of C."""
    ended = os.pidfd_open(child)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(sample.JOBS, 0)  # only whether the harness is gone
    poll.poll()
    poll.unregister(sample.JOBS)
    if not poll.poll(LEAVE_S * 1000):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _end_descendants() -> None:
    """Kill everything that is left below this process, however fast it forks."""
    tree = Tree()
    while left := tree.descendants(MANY):
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG | ANY_CHILD)[0]:
                pass
        time.sleep(0.002)


def _fork_zygote(become_zygote: Callable[[int], NoReturn]) -> tuple[int, int]:
    """Fork, and wait until the child serves. Return its pid and the socket that leads to it."""
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    child = os.fork()
    if child == 0:
        ours.close()
        for descriptor in (sample.JOBS, sample.REPORTS, sample.LINK):
            os.dup2(0, descriptor)  # /dev/null: a program's own will have these numbers
        try:
            become_zygote(theirs.fileno())
        except BaseException as error:
            theirs.send(f"{type(error).__name__}: {error}".encode()[:WORDS])
        finally:
            os._exit(1)
    theirs.close()
    said = ours.recv(WORDS)
    if said != READY:
        raise OSError(said.decode(errors="replace") or "the fork server ended")
    return child, ours.detach()


def _others_can_enter(path: str) -> bool:
    while path != "/":
        if not os.stat(path).st_mode & stat.S_IXOTH:
            return False
        path = os.path.dirname(path)
    return True


def start(settings: Settings) -> Place:
    """Set up the tier's place. Raise OSError if this machine does not allow it."""
    try:
        os.close(os.pidfd_open(os.getpid()))  # the keeper needs them; some containers refuse
    except OSError as error:
        raise OSError(error.errno, f"pidfd_open: {error.strerror}") from None
    tiers: dict[str, Callable[[], Place]] = {
        "root": lambda: in_namespaces(settings, as_root=True),
        "user": lambda: in_namespaces(settings, as_root=False),
        "landlock": lambda: by_landlock(settings),
        "container": lambda: by_landlock(settings, in_container=True),
    }
    return tiers[settings.tier]()
