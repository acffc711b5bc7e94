"""Many programs, hostile ones among them, a busy machine, a killed harness."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from assay.data.failures import explain_failure
from assay.sandbox import open_sandbox
from assay.types import Benchmark, Job, Limits, Program, SampleKey, Tests, Verdict
from tests.busy_processes import busy_processes
from tests.e2e.test_resume import Pid, descendants, survivors
from tests.security.control_groups import groups_of

HOSTILE = (
    "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "import os\nos.kill(-1, 9)",
    "x = []\nwhile True: x.append(bytearray(1 << 20))",
    "for i in range(50): print('x' * 10**6)",
)


RANDOM_INPUTS = {"HumanEval/38", "HumanEval/50"}  # chosen again by the benchmark's own tests


def leftovers(workers: set[Pid]) -> list[str]:
    """Return mounts and control groups of these workers. Other harnesses may have theirs."""
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    names = [re.compile(rf"assay-{pid}\b") for pid in workers]
    ours = [mount for mount in mounts if any(name.search(mount) for name in names)]
    return [*ours, *map(str, groups_of(workers))]


@pytest.mark.parametrize(
    "count",
    [pytest.param(3000, marks=pytest.mark.slow), pytest.param(10_000, marks=pytest.mark.whole)],
)
def test_honest_verdicts_beside_hostile_programs(count: int) -> None:
    """One program in a hundred is hostile."""

    def jobs() -> Iterator[Job]:
        for i in range(count):
            if i % 100 == 50:
                code = HOSTILE[i // 100 % len(HOSTILE)]
                limits = Limits(cpu_s=1, wall_s=2)
            else:
                code, limits = f"def f(x):\n    return x + {i % 2}\n", Limits()
            yield Job(str(i), 0, Program(code, "x"), Tests("f", "assert f(1) == 2"), limits)

    others = descendants(os.getpid())
    sandbox = open_sandbox("process", 2)
    family: set[Pid] = set()
    wrong, seen, early, late = [], 0, 0, 0
    for verdict in sandbox.judge(jobs()):
        seen += 1
        i = int(verdict.task_id)
        if i % 100 != 50 and verdict.status != ("pass" if i % 2 else "fail"):
            wrong.append(verdict)
        if seen == 1000:
            early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        family |= descendants(os.getpid()) - others if seen % 500 == 0 else set()
    late = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sandbox.close()
    assert wrong == []
    assert seen == count
    assert late - early < 20_000  # KiB
    assert survivors(family) == []
    assert leftovers(family) == []


def mixed(benchmark: Benchmark) -> Iterator[Job]:
    """5 x 164 HumanEval samples, right and wrong mixed."""
    for sample in range(5):
        for number, p in enumerate(benchmark.problems):
            wrong = f"def {p.tests.entry_point}(*a, **k):\n    return None\n"
            code = p.reference if (number + sample) % 2 else wrong
            yield Job(p.task_id, sample, Program(code, "x"), p.tests, benchmark.limits)


@pytest.mark.slow
def test_verdicts_do_not_depend_on_the_machines_load(humaneval: Benchmark) -> None:
    def verdicts() -> Mapping[SampleKey, tuple[str, str, str]]:
        sandbox = open_sandbox("process", 2)
        found = {v.key: (v.status, v.reason, shown(v)) for v in sandbox.judge(mixed(humaneval))}
        sandbox.close()
        return found

    def shown(verdict: Verdict) -> str:
        return "" if verdict.task_id in RANDOM_INPUTS else explain_failure(verdict)

    idle = verdicts()
    assert sum(status == "pass" for status, _, _ in idle.values()) == 410
    with busy_processes(8, own_sessions=True):
        for _ in range(3):
            assert verdicts() == idle


@pytest.mark.slow
def test_a_starved_program_gets_its_time() -> None:
    """Beside two busy processes a core it needs more than its wall limit, and still passes."""
    work = "import time\nwhile time.process_time() < 1.5: pass\ndef f(): return 1\n"
    sandbox = open_sandbox("process", 1)
    limits = Limits(cpu_s=4, wall_s=2)
    with busy_processes(2 * (os.cpu_count() or 1), own_sessions=True):
        (verdict,) = sandbox.judge(
            [Job("t", 0, Program(work, "x"), Tests("f", "assert f() == 1"), limits)]
        )
    sandbox.close()
    assert (verdict.status, verdict.reason) == ("pass", "passed")
    assert verdict.wall_s > 2


@pytest.mark.parametrize(
    "tier", ["root", "landlock"] if os.geteuid() == 0 else ["user", "landlock"]
)
def test_nothing_survives_a_killed_harness(tier: str) -> None:
    script = f"""
from assay.sandbox import open_sandbox
from assay.types import *
child = "if not os.fork(): os.setsid(); time.sleep(60)"
bomb = f"import os, time\\nfor i in range(20):\\n    {{child}}\\ntime.sleep(60)"
jobs = [Job(str(i), 0, Program(bomb, "x"), Tests("f", "")) for i in range(4)]
print("started", flush=True)
list(open_sandbox("process", 2, {tier!r}).judge(jobs))
"""
    harness = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 20
    while len(family := descendants(harness.pid)) < 40 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(family) >= 40
    harness.kill()
    harness.communicate()
    assert survivors(family, 2.0) == []


def test_a_worker_that_dies_is_replaced_and_its_program_judged_again() -> None:
    sandbox = open_sandbox("process", 1)
    slow = "import time\ntime.sleep(0.5)\ndef f(): return 1\n"
    jobs = [Job(str(i), 0, Program(slow, "x"), Tests("f", "assert f() == 1")) for i in range(4)]
    killed = False
    verdicts = []
    for verdict in sandbox.judge(jobs):
        verdicts.append(verdict.status)
        if not killed:
            killed = True
            zygotes = [p for p in descendants(os.getpid()) if _is_zygote(p)]
            assert zygotes
            for zygote in zygotes:
                os.kill(zygote, 9)
    sandbox.close()
    assert verdicts == ["pass"] * 4


def _is_zygote(pid: int) -> bool:
    """The child of the keeper, which is a child of ours."""
    try:
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        grandparent = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has just ended
        return False
    return grandparent == os.getpid()


# A chain of processes, each of which ends as soon as it has forked the next, for a bounded time.
CHAIN = """
import ctypes, os, time
ctypes.CDLL(None).prctl(15, b"@NAME@", 0, 0, 0)
if os.fork():
    time.sleep(30)
os.setsid()
end = time.monotonic() + 30
while time.monotonic() < end:
    if os.fork():
        time.sleep(0.01)
        os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="stops a process that nobody else may signal")
def test_nothing_survives_a_worker_that_has_to_be_killed() -> None:
    """The process that ends the chain must not be killed together with the worker."""
    name = f"chain-{os.getpid()}"[:15]
    sandbox = open_sandbox("process", 1, "landlock")
    code = CHAIN.replace("@NAME@", name) + "def f(): return 1\n"
    job = Job("t", 0, Program(code, "x"), Tests("f", "assert f() == 1"), Limits(wall_s=20))
    before = descendants(os.getpid())
    judging = threading.Thread(target=lambda: list(sandbox.judge([job])), daemon=True)
    judging.start()
    wait_until(lambda: processes_named(name))
    for pid in descendants(os.getpid()) - before:
        if name not in comm(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)  # neither keeper nor zygote notices anything any more
    outer = {pid for pid in descendants(os.getpid()) - before if parent(pid) == os.getpid()}
    for pid in outer:
        os.kill(pid, signal.SIGCONT)
    sandbox.close()
    judging.join(30)
    wait_until(lambda: not processes_named(name), seconds=5)


def wait_until(holds: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def comm(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def processes_named(name: str) -> list[int]:
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    return [pid for pid in pids if comm(pid) == name]
