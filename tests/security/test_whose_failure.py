"""A failure of the machine is not the model's, and a program cannot make its own look like one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.types import Integrity, Limits, Verdict
from tests.busy_processes import busy_processes
from tests.security.in_tiers import COSTLY_TIERS, TIERS, Step, job, judge_in

MIB = 1 << 20
MEMORY_V1 = Path("/sys/fs/cgroup/memory")
MEMORY_V2 = Path("/sys/fs/cgroup")
HOG = """
import time
block = bytearray(200 << 20)
for place in range(0, len(block), 4096): block[place] = 1
time.sleep(1.5)
def f(): return 1
"""
TOO_LARGE = "def f(): return 1\n#" + "a" * (100 << 20)
# Keeps the process that reads its output busier than itself, and its own processes waiting.
BUSY_KEEPER = """
import os, time
os.write(1, b"x" * 500_000)
for _ in range(6):
    if not os.fork():
        while True:
            os.write(1, b"x")
time.sleep(60)
def f(): return 1
"""


@pytest.fixture
def small_group() -> Iterator[Path]:
    """Make a cgroup with room for one of two programs."""
    version_1 = (MEMORY_V1 / "memory.limit_in_bytes").exists()
    parent = MEMORY_V1 if version_1 else MEMORY_V2
    group = parent / f"assay-test-{os.getpid()}"
    limit = "memory.limit_in_bytes" if version_1 else "memory.max"
    try:
        group.mkdir()
        (group / limit).write_text(str(330 * MIB))
        if not version_1:
            (group / "cgroup.subtree_control").write_text("+memory")
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        pytest.skip(f"no cgroup can be made here: {error}")
    yield group
    with contextlib.suppress(OSError):
        group.rmdir()


@pytest.mark.slow
@pytest.mark.skipif(not MEMORY_V1.exists(), reason="needs cgroup version 1")
@pytest.mark.parametrize("integrity", ["shared", "separated"])
def test_memory_that_the_machine_lacks_is_not_used_by_the_program(
    small_group: Path, integrity: Integrity
) -> None:
    """A kill by the machine must not count as one by the program's own limit of 512 MB."""
    enter = f"open({str(small_group / 'cgroup.procs')!r}, 'w').write('0')"
    limits = Limits(cpu_s=10, wall_s=20, memory_mb=512)
    jobs = [job(f"hog {i}", HOG, integrity=integrity, limits=limits) for i in range(2)]
    verdicts = judge_in("root", [Step(jobs)], workers=2, before=enter)
    assert [(v.status, v.reason) for v in verdicts] == [("pass", "passed")] * 2


@pytest.mark.slow
@pytest.mark.parametrize("integrity", ["shared", "separated"])
@pytest.mark.parametrize("tier", TIERS)
def test_a_program_larger_than_its_memory_has_failed(tier: str, integrity: Integrity) -> None:
    """A failed fork must not make it invalid ("a process could not be forked")."""
    large = job("large", TOO_LARGE, integrity=integrity, limits=Limits(memory_mb=64))
    honest = job("honest", "def f(): return 1", integrity=integrity)
    verdicts = judge_in(tier, [Step([large]), Step([honest])])
    assert [(v.task_id, v.status, v.reason) for v in verdicts] == [
        ("large", "fail", "memory"), ("honest", "pass", "passed"),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
def test_work_that_a_program_makes_for_its_keeper_is_its_own(tier: str) -> None:
    """Work of the keeper must not count as that of others, for which the program is given time.

    On a busy machine it can be 4 s.
    """
    busy = job("busy", BUSY_KEEPER, limits=Limits(cpu_s=3, wall_s=8))
    (verdict,) = judge_in(tier, [Step([busy])])
    assert (verdict.status, verdict.reason) == ("fail", "timeout"), verdict


NAPS = """
import time
def f():
    while True: time.sleep(0.00002)
"""


@pytest.mark.parametrize("tier", COSTLY_TIERS)
def test_a_program_that_naps_on_a_busy_machine_has_failed(tier: str) -> None:
    """It must not be invalid, though after each nap it waits for a CPU that others have."""
    naps = job("naps", NAPS, limits=Limits(cpu_s=1, wall_s=3))
    with busy_processes(2 * len(os.sched_getaffinity(0))):
        (verdict,) = judge_in(tier, [Step([naps])])
    assert (verdict.status, verdict.reason) == ("fail", "timeout"), verdict


FIGURES = """
import dataclasses
import assay.sandbox.kinds.process as process
start_with, allowed = process.start_with, ("figures", "loopback")
process.start_with = lambda *about: dataclasses.replace(start_with(*about), allowed=allowed)
"""
LOOKS = """
import os
assert "MemTotal" in open("/proc/meminfo").read()
assert not os.path.exists("/proc/sys/kernel")
processes = [name for name in os.listdir("/proc") if name.isdecimal()]
assert processes == [str(os.getpid())], processes
def f(): return 1
"""


@pytest.mark.parametrize("tier", ["root", "user"])
def test_environments_with_figures_work_in_every_tier_with_namespaces(tier: str) -> None:
    """In tier user the kernel can refuse a new /proc, which must not make programs invalid."""
    verdicts: list[Verdict] = judge_in(tier, [Step([job("looks", LOOKS)])], before=FIGURES)
    assert [(v.status, v.detail) for v in verdicts] == [("pass", "")]
