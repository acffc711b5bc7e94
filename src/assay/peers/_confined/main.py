"""The supervisor: builds the sandbox, starts the command in it, watches it, collects its files.

Two processes stand between the harness and the command. The supervisor stays in the host's process
namespace, out of the command's sight. The first process of the new namespace has given up every
privilege before the command begins; when it ends, the kernel kills everything in there. It dies
with the supervisor, and the supervisor ends when the harness closes its standard input.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import shutil
import signal
import stat
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NoReturn

from inside.isolation import kernel, landlock, root, seccomp, visible
from inside.isolation.cgroup import TreeLimit, open_limit
from inside.isolation.machine import Machine
from inside.serving.tiers import FIRST_UID

from .messages import SCRATCH, Report, Settings, read_settings
from .watch import Watch

OPEN_FILES = 4096
INODES = 1 << 16  # of the scratch folder
MOST_FILES = 64  # collected from one folder
PIECE = 1 << 20
NO_FILES: Mapping[str, int] = {}


def main(harness: int) -> None:
    """Serve the harness at the other end of a socket."""
    os.umask(0o022)  # another user passes through the folders that are made here
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the harness's parent may ignore it
    os.set_inheritable(harness, False)
    with os.fdopen(os.dup(harness), "rb") as messages:
        settings = read_settings(messages.readline())
    limits = settings.limits
    limit = open_limit(limits.memory_mb, limits.processes) if settings.use_group else None
    try:
        watch, status = _run(settings, limit)
    except (OSError, KeyError) as error:  # KeyError: an architecture without a filter
        _report(harness, Report(refused=_reason(error)))
        return
    finally:
        if limit:
            limit.remove()
    if watch.refusal:
        _report(harness, Report(refused=watch.refusal.decode(errors="replace")))
    elif watch.stopped != "harness":
        files = {} if watch.stopped else dict(_files(settings.outputs))
        report = Report(stopped=watch.stopped, status=status, stderr=watch.tail.decode("latin-1"))
        _report(harness, report, files, settings.limits.output_mb << 20)


def _run(settings: Settings, limit: TreeLimit | None) -> tuple[Watch, int]:
    machine = Machine()
    uid = FIRST_UID + os.getpid() if os.geteuid() == 0 else None
    root.enter_namespaces(through_user_namespace=uid is None)
    stderr, command_stderr = os.pipe()
    refusal, refuse = os.pipe()
    alive, supervisor = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(supervisor)
        _become_first_process(settings, uid, limit, alive, command_stderr, refuse)
    for descriptor in (alive, command_stderr, refuse):
        os.close(descriptor)
    watch = Watch(settings, limit, machine)
    try:
        watch.run(os.pidfd_open(first), stderr, refusal, harness=0)
    finally:
        os.kill(first, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])
    watch.finish(stderr, refusal)
    return watch, status


def _become_first_process(
    settings: Settings,
    uid: int | None,
    limit: TreeLimit | None,
    alive: int,
    stderr: int,
    refuse: int,
) -> NoReturn:
    """Give everything up, start the command, and end as it does.

    ``alive`` closes when the supervisor has died.
    """
    try:
        kernel.die_with_parent()
        if limit:
            limit.enter()
        _set_limits(settings)
        _enter_private_root(settings, uid)
        kernel.drop_privileges(uid)
        kernel.die_with_parent()  # a change of user has switched it off
        if select.select([alive], [], [], 0)[0]:  # the supervisor has died meanwhile
            os._exit(1)
        landlock.Rules(("/",), (SCRATCH, *visible.DEVICES), alone=False).enter()
        families = (seccomp.AF_UNIX, seccomp.AF_INET, seccomp.AF_INET6)  # its own network
        seccomp.install(families=families, watched=False)
        # Without a handler no signal from inside reaches the first process; Python has one.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        command = os.fork()
        if command == 0:
            _become_command(settings, stderr)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(refuse, _reason(error).encode()[:1000])
        os._exit(1)
    os.close(refuse)
    os.close(stderr)
    while True:
        pid, status = os.wait()
        if pid == command:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _enter_private_root(settings: Settings, uid: int | None) -> None:
    """Leave the host's files behind, for the supervisor too.

    What stays is read-only: the system's folders and ``shown``, a map from places to host files,
    without ``hidden``. ``inputs`` are copied into the scratch folder, which belongs to ``uid``.
    """
    inputs = {name: os.open(path, os.O_RDONLY) for name, path in settings.inputs.items()}
    system = (*visible.system_folders(), *visible.system_files())
    scratch = Path(root.STAGING + SCRATCH)

    def mount_scratch() -> None:
        """Mount the scratch folder first, because some of the files may be shown below it."""
        scratch.mkdir()
        options = f"size={settings.limits.files_mb}m,nr_inodes={INODES},mode=1777"
        kernel.mount("tmpfs", str(scratch), "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)

    shown = {path: path for path in system} | settings.shown
    root.build(shown, settings.hidden, mount_scratch)
    for name, source in inputs.items():
        with os.fdopen(source, "rb") as content, (scratch / name).open("wb") as target:
            shutil.copyfileobj(content, target)
        if uid is not None:
            os.chown(scratch / name, uid, uid)
    Path(root.STAGING, "dev/shm").symlink_to(SCRATCH)
    Path(root.STAGING + root.PROC).mkdir()
    kernel.mount("proc", root.STAGING + root.PROC, "proc", root.PROC_FLAGS)
    root.cover_all_but_figures(root.STAGING + root.PROC)
    root.enter()


def _become_command(settings: Settings, stderr: int) -> NoReturn:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for place, descriptor in enumerate((null, null, stderr)):
        os.dup2(descriptor, place)
    os.chdir(SCRATCH)
    os.execve(settings.command[0], settings.command, settings.variables)


def _reason(error: BaseException) -> str:
    if not isinstance(error, OSError):
        return repr(error)
    return ": ".join(str(part) for part in (error.filename, error.strerror) if part) or str(error)


def _set_limits(settings: Settings) -> None:
    _forbid_core_dumps()
    for which, value in (
        (resource.RLIMIT_AS, settings.limits.memory_mb << 20),
        (resource.RLIMIT_NPROC, settings.limits.processes),
        (resource.RLIMIT_CPU, settings.limits.cpu_s),
        (resource.RLIMIT_FSIZE, settings.limits.files_mb << 20),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 1 << 16),
    ):
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))


def _forbid_core_dumps() -> None:
    """Set the limit 1, for which the kernel starts no handler either, as it does for 0."""
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
    except (OSError, ValueError):
        if Path("/proc/sys/kernel/core_pattern").read_text().startswith("|"):
            raise
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _files(names: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Open the regular files of these names, and those in folders of these names.

    The command's programs may have put anything there: no link is followed, no pipe waited for.
    """
    for name in names:
        with contextlib.suppress(OSError):
            found = _open_below(os.open(SCRATCH, os.O_RDONLY), name)
            if stat.S_ISDIR(os.fstat(found).st_mode):
                for inner in [entry.name for entry in islice(os.scandir(found), MOST_FILES)]:
                    with contextlib.suppress(OSError):
                        yield from _regular(f"{name}/{inner}", _open_below(found, inner))
            else:
                yield from _regular(name, found)


def _open_below(folder: int, name: str) -> int:
    for part in name.split("/"):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        folder = os.open(part, flags, dir_fd=folder)
    return folder


def _regular(name: str, descriptor: int) -> Iterator[tuple[str, int]]:
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        yield name, descriptor


def _report(
    harness: int, report: Report, files: Mapping[str, int] = NO_FILES, most_bytes: int = 0
) -> None:
    """Write a line of JSON and then the contents of the files, given by their descriptors."""
    sizes = {name: os.fstat(descriptor).st_size for name, descriptor in files.items()}
    if sum(sizes.values()) > most_bytes:
        report, files, sizes = report._replace(stopped="output"), NO_FILES, {}
    with os.fdopen(harness, "wb") as output:
        output.write(json.dumps(report._replace(sizes=sizes)).encode() + b"\n")
        for name, descriptor in files.items():
            left = sizes[name]
            while left and (piece := os.read(descriptor, min(left, PIECE))):
                output.write(piece)
                left -= len(piece)
