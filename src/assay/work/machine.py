"""Count the cores that this process may use, and say whether they are free.

A container's limit is rarely visible as a number of cores: ``os.cpu_count`` is that of the host,
the affinity mask names the allowed cores, and a CPU quota of a control group limits their time.
The smallest of these counts.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from pathlib import Path, PurePosixPath

PROC, FILES = Path("/proc/self"), ("mountinfo", "cgroup")
CPUS = Path("/sys/devices/system/cpu")
FREE_PART = 0.9  # of a CPU that a process gets on a machine that is not busy


def usable_cores() -> int:
    """Return how many cores can compute for this process at a time, at least 1.

    A part of a core in a quota counts as a whole one, or its time would not be used.
    """
    return limit_by_quota(len(allowed_cores()), read_quota())


def usable_physical_cores() -> int:
    """Return the same, with hardware threads that share a core counted once.

    Two of them are no faster than one at the arithmetic of a model.
    """
    cores = {_siblings(core) for core in allowed_cores()}
    return limit_by_quota(len(cores), read_quota())


def allowed_cores() -> set[int]:
    """Return the cores in the affinity mask, or all of them where there is no such mask."""
    try:
        return os.sched_getaffinity(0)
    except AttributeError:  # only Linux has it
        return set(range(os.cpu_count() or 1))


def idle_s() -> float | None:
    """Return the seconds in which a CPU was idle since the start, summed over the CPUs, or None."""
    try:
        figures = Path("/proc/stat").read_text().split("\n", 1)[0].split()
        return sum(map(int, figures[4:6])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None


def is_busy(wall_s: float, idle_s: float | None, own_cpu_s: float) -> bool:
    """Return whether a process could not have had most of a CPU for itself.

    ``idle_s`` is how long CPUs were idle in that time, and ``own_cpu_s`` what the process used.
    """
    return idle_s is not None and idle_s + own_cpu_s < FREE_PART * wall_s


def limit_by_quota(cores: int, quota: float | None) -> int:
    """Return ``cores``, or fewer if the quota is of fewer."""
    return max(1, cores if quota is None else min(cores, math.ceil(quota)))


def read_quota(proc: Path = PROC) -> float | None:
    """Return the cores' worth of time that all control groups of this process allow, or None."""
    try:
        mounts, groups = (os.fsdecode((proc / name).read_bytes()) for name in FILES)
    except OSError:  # not Linux
        return None
    quotas = [_quota_of(folder) for folder in find_cpu_groups(mounts, groups)]
    return min((quota for quota in quotas if quota is not None), default=None)


def find_cpu_groups(mounts: str, groups: str) -> list[Path]:
    """Return the folders of the control groups that limit CPU time, each with all above it.

    ``mounts`` and ``groups`` are what Linux has in ``/proc/self/mountinfo`` and ``cgroup``.
    """
    paths = _paths_by_controller(groups)
    found = []
    for line in filter(None, mounts.split("\n")):
        before, _, after = line.partition(" - ")
        root, mount_point = (_unescape(field) for field in before.split(" ")[3:5])
        kind, _, options = after.split(" ")[:3]  # the second, the source, may be empty
        controller = {"cgroup": "cpu", "cgroup2": ""}.get(kind)
        if controller is None or (controller and controller not in options.split(",")):
            continue
        if (path := paths.get(controller)) is not None:
            found += _folders_up(Path(mount_point), root, path)
    return found


def _paths_by_controller(groups: str) -> dict[str, str]:
    """Return the path of each controller's group; the unified hierarchy has no name."""
    paths: dict[str, str] = {}
    for line in filter(None, groups.split("\n")):
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path)
    return paths


def _folders_up(mount_point: Path, root: str, path: str) -> list[Path]:
    """Return the group's folder and those above it, as far as they are mounted."""
    try:
        relative = PurePosixPath(path).relative_to(root)
    except ValueError:  # the mount is of another part of the tree
        relative = PurePosixPath()
    if ".." in relative.parts:
        relative = PurePosixPath()
    return [mount_point / part for part in (relative, *relative.parents)]


def _quota_of(folder: Path) -> float | None:
    """Return one group's own quota in cores; None where it has none."""
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        if (unified := folder / "cpu.max").exists():
            quota, period = unified.read_text().split()
        else:
            quota, period = (
                (folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period")
            )
        if (cores := int(quota) / int(period)) > 0:  # "max" and -1: no limit
            return cores
    return None


def _siblings(core: int) -> str:
    """Return the hardware threads of a core, by any name that is the same for all of them."""
    try:
        return (CPUS / f"cpu{core}" / "topology" / "thread_siblings_list").read_text()
    except OSError:
        return str(core)


def _unescape(field: str) -> str:
    """Return a path as it is: mountinfo writes blanks as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)
