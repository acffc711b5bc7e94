"""Measure what each layer of the process sandbox would cost if every program paid for it.

    python benchmarks/sandbox_layers.py          (as root)

Microseconds over a plain fork, exit and wait of a warmed interpreter, median of 7 rounds of 100.
The sandbox pays those marked "once" once for a worker; the others for every program.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROUNDS, FORKS = 7, 100
INSIDE = Path(__file__).parents[1] / "src" / "assay" / "sandbox"


def fork_us(action: Callable[[], object]) -> float:
    rounds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(FORKS):
            pid = os.fork()
            if pid == 0:
                try:
                    action()
                finally:
                    os._exit(0)
            os.waitpid(pid, 0)
        rounds.append((time.perf_counter() - started) / FORKS * 1e6)
    return statistics.median(rounds)


def call_us(action: Callable[[], object]) -> float:
    rounds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(FORKS):
            action()
        rounds.append((time.perf_counter() - started) / FORKS * 1e6)
    return statistics.median(rounds)


def main() -> None:
    sys.path.insert(0, str(INSIDE))
    from inside.isolation import cgroup, kernel, landlock, root, seccomp, visible
    from inside.serving import sample
    from inside.serving.messages import WorkerLimits

    limits = WorkerLimits(memory_mb=512, files_mb=64, processes=64)
    tree = cgroup.open_limit(limits.memory_mb, limits.processes)
    rules = landlock.Rules(visible.shown_paths(), ("/tmp",), alone=True)
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    root.mount_scratch("/mnt", 64)

    def locked() -> None:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        rules.enter()

    def filtered() -> None:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        seccomp.install(families=(), foreign_files=False, watched=tree is None)

    def renewed() -> None:
        kernel.unmount("/mnt")
        root.mount_scratch("/mnt", 64)

    first = kernel.NamespaceInit(os.open("/proc", os.O_PATH))

    def own_namespace() -> None:
        pid, namespace = first.start()
        os.close(namespace)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    plain = fork_us(lambda: None)
    print(f"{'fork, exit, wait':<34}{plain:>8.0f} us")
    for name, when, action in (
        ("rlimits", "once, but for CPU", lambda: sample.limit_worker(limits, 10_000)),
        *([("cgroup entry", "once", tree.enter)] if tree else []),
        ("Landlock", "each", locked),
        ("seccomp", "once", filtered),
        ("network namespace", "once", lambda: kernel.unshare(kernel.CLONE_NEWNET)),
        ("mount namespace", "once; each in an environment with /proc",
         lambda: kernel.unshare(kernel.CLONE_NEWNS)),
        ("IPC and host-name namespaces", "once",
         lambda: kernel.unshare(kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS)),
    ):  # fmt: skip
        print(f"{name:<34}{fork_us(action) - plain:>+8.0f} us  {when}")
    for name, when, action in (
        ("pid namespace", "each", own_namespace),
        ("fresh scratch folder", "after programs that left files", renewed),
    ):
        print(f"{name:<34}{call_us(action):>+8.0f} us  {when}")
    if tree:
        tree.remove()


if __name__ == "__main__":
    if sys.flags.no_site:
        main()
    else:  # in an interpreter like the sandbox's
        subprocess.run([sys.executable, "-P", "-S", "-s", "-B", __file__], check=True)
