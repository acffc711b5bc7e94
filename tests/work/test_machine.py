"""Cores are counted by affinity and by CPU quota."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.work import machine

UNIFIED = "30 23 0:26 {root} {point} rw,nosuid - cgroup2 cgroup2 rw\n"
SEPARATE = "31 23 0:27 {root} {point} rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
OTHERS = (
    "22 1 254:0 / / rw - ext4 /dev/root rw\n"
    "32 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)


def write_proc(folder: Path, mounts: str, groups: str) -> Path:
    proc = folder / "proc"
    proc.mkdir()
    (proc / "mountinfo").write_text(OTHERS + mounts)
    (proc / "cgroup").write_text(groups)
    return proc


def write_group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("cpu_", "cpu.", 1)).write_text(f"{content}\n")


def test_quota_of_the_unified_hierarchy(tmp_path: Path) -> None:
    point = tmp_path / "cgroup"
    write_group(point / "pod" / "task", cpu_max="150000 100000")
    proc = write_proc(tmp_path, UNIFIED.format(root="/", point=point), "0::/pod/task\n")
    assert machine.read_quota(proc) == 1.5


@pytest.mark.parametrize(
    "odd",
    [
        b"40 22 0:30 / /mnt/nothing rw - tmpfs  rw\n",  # an empty source
        b"41 22 0:31 / /mnt/caf\xe9 rw - ext4 /dev/sdb rw\n",  # a name that is not UTF-8
        "42 22 0:32 / /mnt/a\u2028b rw - ext4 /dev/sdc rw\n".encode(),
    ],
)
def test_other_mounts_do_not_matter(tmp_path: Path, odd: bytes) -> None:
    """A mount that cannot be read must not end every command in a traceback."""
    point = tmp_path / "cgroup"
    write_group(point, cpu_max="150000 100000")
    proc = write_proc(tmp_path, "", "0::/\n")
    unified = UNIFIED.format(root="/", point=point).encode()
    (proc / "mountinfo").write_bytes(odd + unified)
    assert machine.read_quota(proc) == 1.5


def test_the_smallest_quota_on_the_way_up_counts(tmp_path: Path) -> None:
    point = tmp_path / "cgroup"
    write_group(point)
    write_group(point / "pod", cpu_max="50000 100000")
    write_group(point / "pod" / "task", cpu_max="max 100000")
    proc = write_proc(tmp_path, UNIFIED.format(root="/", point=point), "0::/pod/task\n")
    assert machine.read_quota(proc) == 0.5


def test_quota_of_separate_hierarchies(tmp_path: Path) -> None:
    point = tmp_path / "cpu, cpuacct"  # mountinfo has blanks as \040
    write_group(point, cpu_cfs_quota_us="-1", cpu_cfs_period_us="100000")
    write_group(point / "job", cpu_cfs_quota_us="300000", cpu_cfs_period_us="100000")
    mounts = SEPARATE.format(root="/", point=str(point).replace(" ", r"\040"))
    groups = "4:memory:/elsewhere\n2:cpu,cpuacct:/job\n0::/\n"
    assert machine.read_quota(write_proc(tmp_path, mounts, groups)) == 3


def test_a_container_sees_its_own_group_as_the_mount(tmp_path: Path) -> None:
    point = tmp_path / "cpu"
    write_group(point, cpu_cfs_quota_us="200000", cpu_cfs_period_us="100000")
    mounts = SEPARATE.format(root="/docker/0123", point=point)
    groups = "2:cpu,cpuacct:/docker/0123\n"
    assert machine.read_quota(write_proc(tmp_path, mounts, groups)) == 2


@pytest.mark.parametrize("path", ["/elsewhere", "/../../outside"])
def test_a_group_outside_of_the_mount_counts_as_the_mount(tmp_path: Path, path: str) -> None:
    point = tmp_path / "cgroup"
    write_group(point, cpu_max="100000 100000")
    root = "/pod" if path == "/elsewhere" else "/"
    proc = write_proc(tmp_path, UNIFIED.format(root=root, point=point), f"0::{path}\n")
    assert machine.read_quota(proc) == 1


@pytest.mark.parametrize("content", ["max 100000", "", "nonsense", "100000 0", "1 2 3"])
def test_no_quota(tmp_path: Path, content: str) -> None:
    write_group(tmp_path / "cgroup", cpu_max=content)
    mounts = UNIFIED.format(root="/", point=tmp_path / "cgroup")
    assert machine.read_quota(write_proc(tmp_path, mounts, "0::/\n")) is None
    assert machine.read_quota(tmp_path / "nowhere") is None


@given(st.integers(1, 4096), st.none() | st.floats(1e-6, 1e6))
def test_a_quota_only_takes_cores_away(cores: int, quota: float | None) -> None:
    found = machine.limit_by_quota(cores, quota)
    assert 1 <= found <= cores
    assert quota is None or found >= min(cores, quota)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs affinity, as Linux has it")
def test_cores_outside_of_the_affinity_mask_do_not_count() -> None:
    one = min(os.sched_getaffinity(0))
    program = (
        f"import os; os.sched_setaffinity(0, [{one}]); from assay.work.machine import *; "
        "print(usable_cores(), usable_physical_cores())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["1", "1"]


def test_hardware_threads_of_a_core_count_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for core, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        write_group(tmp_path / f"cpu{core}" / "topology", thread_siblings_list=siblings)
    monkeypatch.setattr(machine, "CPUS", tmp_path)
    monkeypatch.setattr(machine, "allowed_cores", lambda: {0, 1, 2, 3})
    monkeypatch.setattr(machine, "read_quota", lambda: None)
    assert machine.usable_physical_cores() == 2
    assert machine.usable_cores() == 4


def test_one_module_counts_cores() -> None:
    """Code that counts for itself leaves quotas out."""
    source = Path(machine.__file__).parents[1]
    for path in source.rglob("*.py"):
        # What runs inside a sandbox has the standard library alone.
        if path.name != "machine.py" and path.parents[1].name != "inside":
            text = path.read_text()
            assert "cpu_count" not in text, path
            assert "sched_getaffinity" not in text, path


@pytest.mark.parametrize(
    ("wall_s", "idle_s", "own_s", "busy"),
    [
        (10.0, 10.0, 10.0, False),  # two cores, one of them idle
        (10.0, 0.0, 10.0, False),  # it had a core for itself
        (10.0, 0.0, 6.7, True),  # three processes on two cores
        (5.0, 0.0, 0.01, True),  # it slept, and others left nothing
        (5.0, 4.8, 0.01, False),  # it slept, and so did the machine
        (5.0, None, 0.0, False),  # nothing is known
    ],
)
def test_a_machine_is_busy_if_a_process_gets_less_than_a_core(
    wall_s: float, idle_s: float | None, own_s: float, busy: bool
) -> None:
    assert machine.is_busy(wall_s, idle_s, own_s) is busy


def test_idle_time_is_read_from_the_kernel() -> None:
    first = machine.idle_s()
    assert first is not None
    time.sleep(0.05)
    second = machine.idle_s()
    assert second is not None
    assert second >= first
