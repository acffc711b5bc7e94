"""Many workers, many descriptors, and a harness or machine in an unusual state."""

from __future__ import annotations

import pytest

from assay.types import Job, Limits, Verdict
from tests.security.in_tiers import (
    NAMES,
    TIERS,
    Step,
    assert_all_failed,
    job,
    judge_in,
)

HIGH_LIMIT = """
import resource
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
"""
# Says which descriptors are open, then tries to spoil whatever they lead to.
LOOKS = """
import os, stat, time
opened = []
for fd in range(3, 8192):
    try: mode = os.fstat(fd).st_mode
    except OSError: continue
    opened.append(f"{fd}:{'s' if stat.S_ISSOCK(mode) else 'p' if stat.S_ISFIFO(mode) else 'x'}")
time.sleep(0.3)
def f(): raise LookupError(' '.join(opened))
"""
SPOILS = """
import os, socket, time
time.sleep(0.3)
for fd in range(5, 8192):
    try: os.write(fd, b'c' * 99)
    except OSError: continue
    try: socket.socket(fileno=os.dup(fd)).shutdown(socket.SHUT_RDWR)
    except OSError: pass
def f(): return 0
"""
RIGHT, WRONG = "import time\ntime.sleep(0.2)\ndef f(): return 1\n", "def f(): return 2\n"


def mixed(count: int) -> list[Job]:
    """Return jobs of which every second is right."""
    return [job(f"honest-{i}", WRONG if i % 2 else RIGHT) for i in range(count)]


def wrongly_judged(verdicts: list[Verdict]) -> list[Verdict]:
    return [
        v
        for v in verdicts
        if v.task_id.startswith("honest")
        and v.status != ("fail" if int(v.task_id.partition("-")[2]) % 2 else "pass")
    ]


def check_many_workers(tier: str, workers: int) -> None:
    """Fail unless all programs see the same few descriptors and all verdicts are right."""
    (alone,) = judge_in(tier, [Step([job("looks", LOOKS)])])
    steps = [
        Step([job("looks", LOOKS) for _ in range(workers)]),
        Step([job("spoils", SPOILS) for _ in range(workers)]),
        Step(mixed(2 * workers)),
    ]
    verdicts = judge_in(tier, steps, workers=workers, before=HIGH_LIMIT, timeout_s=580)
    assert len(verdicts) == 4 * workers
    assert {v.detail for v in verdicts if v.task_id == "looks"} == {alone.detail}
    assert_all_failed([v for v in verdicts if v.task_id == "spoils"])
    assert wrongly_judged(verdicts) == []


@pytest.mark.whole
@pytest.mark.parametrize("tier", NAMES)
def test_sixty_workers(tier: str) -> None:
    """Programs of the last workers must not have the link to the oracle, above descriptor 255."""
    check_many_workers(tier, 60)


@pytest.mark.whole
def test_two_hundred_and_ten_workers() -> None:
    """So many descriptors are too many for ``select``, which refuses those above 1023."""
    check_many_workers("root", 210)


@pytest.mark.parametrize("tier", TIERS)
def test_a_harness_with_more_than_1024_descriptors(tier: str) -> None:
    """``select`` refuses descriptors above 1023, and no tier could be opened with it."""
    before = f"{HIGH_LIMIT}\nimport os\nheld = [os.open('/dev/null', 0) for _ in range(1100)]\n"
    verdicts = judge_in(tier, [Step([job("looks", LOOKS), *mixed(4)])], before=before)
    (alone,) = judge_in(tier, [Step([job("looks", LOOKS)])])
    assert {v.detail for v in verdicts if v.task_id == "looks"} == {alone.detail}
    assert wrongly_judged(verdicts) == []


# Another program of the same user; it ends with the harness, whose pipe it reads.
NEIGHBOUR = """
import subprocess, sys
script = '''
import sys, threading, time
time.sleep(@DELAY@)
threading.stack_size(65536)
for _ in range(@THREADS@): threading.Thread(target=time.sleep, args=(999,), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
'''
neighbour = subprocess.Popen(
    [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
)
@WAIT@
"""


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("when", ["before", "later"])
def test_a_neighbour_with_many_threads(tier: str, when: str) -> None:
    """Threads of the same user count against its limit of processes in tier landlock."""
    threads = "700" if tier == "root" else "120"
    delay, wait = ("0", "neighbour.stdout.readline()") if when == "before" else ("1", "")
    before = NEIGHBOUR.replace("@THREADS@", threads).replace("@DELAY@", delay)
    steps = [
        Step([job("honest-0", f"import time\ntime.sleep(2)\n{RIGHT}")]),
        Step(mixed(6)),
        Step([job("honest-0", FORKS)]),
    ]
    verdicts = judge_in(tier, steps, before=before.replace("@WAIT@", wait))
    assert len(verdicts) == 8
    assert wrongly_judged(verdicts) == []


FORKS = """
import os, threading
for _ in range(20):
    if not os.fork(): os._exit(0)
    thread = threading.Thread(target=int); thread.start(); thread.join()
for _ in range(20): os.wait()
def f(): return 1
"""
ENDLESS = "def f():\n    while True: pass\n"
STATES = {
    "umask 077": "import os\nos.umask(0o077)",
    "standard input closed": "import os\nos.close(0)",
    "standard input and error closed": "import os\nos.close(0)\nos.close(2)",
    "SIGCHLD ignored": "import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    "all signals blocked": "import signal\nsignal.pthread_sigmask(0, range(1, 65))",
    "all signals ignored": (
        "import signal\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass"
    ),
    "folder deleted": "import os, tempfile\nos.chdir(tempfile.mkdtemp())\nos.rmdir(os.getcwd())",
    "variables for Python": (
        "import os\nos.environ.update(PYTHONSTARTUP='/x', PYTHONHOME='/x', PYTHONPATH='/x', "
        "PYTHONINSPECT='1', PYTHONWARNINGS='error', LD_PRELOAD='/x', PYTHONMALLOC='debug')"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("state", STATES)
def test_a_harness_in_an_unusual_state(tier: str, state: str) -> None:
    """The state of the harness changes neither verdicts nor the choice of the tier.

    An inherited SIGCHLD that is ignored, or a closed standard input, can make all verdicts invalid;
    with umask 077 ``auto`` can choose a weaker tier as root.
    """
    limits = Limits(cpu_s=1, wall_s=8)
    steps = [Step([*mixed(2), job("honest-1", ENDLESS, limits=limits), job("honest-0", FORKS)])]
    auto = tier != "landlock"
    verdicts = judge_in(tier, steps, before=STATES[state], auto=auto)
    assert len(verdicts) == 4
    assert wrongly_judged(verdicts) == []
