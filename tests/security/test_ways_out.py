"""Ways around a verdict: signals, deep answers, early work, descriptors, memory and survivors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from assay.types import Integrity, Limits, Verdict
from tests.security.in_tiers import (
    HARNESS,
    NAMES,
    ORDINARY_UID,
    SYSTEM_PYTHON,
    TIERS,
    Step,
    encode_steps,
    job,
    judge_in,
    readable_source,
)  # fmt: skip

SHORT = Limits(cpu_s=2, wall_s=3)
# The program's own end of the channel, without the code that serves it.
CHANNEL = """
import json, marshal, os, struct, time
def read(size):
    data = b""
    while len(data) < size:
        piece = os.read(4, size - len(data))
        if not piece: os._exit(0)
        data += piece
    return data
def send(answers):
    message = json.dumps(answers).encode()
    os.write(4, struct.pack(">I", len(message)) + message)
"""
LATER_SIGNAL = "import os\nos.kill(os.getpid(), 40)\n"
ODD_NAME = """
import ctypes, time
ctypes.CDLL(None).prctl(15, b"\\xff\\xfe", 0, 0, 0)
time.sleep(0.5)
def f(x=0): return 2
"""
DEEP = (
    CHANNEL + "while True:\n    (size,) = struct.unpack('>I', read(4))\n    read(size)\n"
    "    message = ('[[' + '[' * 250 + ']' * 250 + ']]').encode()\n"
    "    os.write(4, struct.pack('>I', len(message)) + message)\n"
)
EARLY = (
    CHANNEL + "(size,) = struct.unpack('>I', read(4))\ncalls = marshal.loads(read(size)[1:])\n"
    "end = time.process_time() + 2\nwhile time.process_time() < end: pass\n"
    "send([])\nsend([[positional[0] + 1] for positional, _ in calls])\ntime.sleep(1)\n"
)
IN_FLIGHT = """
import array, os, socket, time
time.sleep(0.2)
link = socket.socket(fileno=@FD@)
link.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [1]))])
os._exit(0)
"""
LEADERS_END = """
import ctypes, os, threading, time
def work():
    time.sleep(0.05)
    kept = bytearray(45 << 20)
    for i in range(0, len(kept), 4096): kept[i] = 1
    time.sleep(2.5)
    os._exit(0)
for _ in range(8):
    if not os.fork():
        threading.Thread(target=work).start()
        ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
time.sleep(1.5)
def f(): return 1
"""
LOCKS = """
import fcntl, struct
fcntl.fcntl(0, fcntl.F_SETFL, 0o2000)
for place, byte in enumerate(b"secret"):
    fcntl.fcntl(0, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 1000 * place + byte, 1, 0))
"""
FINDS_LOCKS = """
import fcntl, os, struct
found = [oct(fcntl.fcntl(0, fcntl.F_GETFL) & 0o2000)]
own = os.open("/dev/null", os.O_RDWR)
for place in range(6):
    asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 1000 * place, 1000, 0)
    kind, _, start, length, _ = struct.unpack("hhqqi4x", fcntl.fcntl(own, 36, asked))
    if kind != fcntl.F_UNLCK and length == 1: found.append(start)  # others lock the whole file
assert found == ["0o0"], found
"""
SURVIVORS = """
import os, time
if not os.fork():
    if not os.fork():
        os.setsid()
        os.execv("/bin/sleep", ["sleep", "@SECONDS@"])
    time.sleep(77)
time.sleep(77)
"""


def judged(tier: str, code: str, tests: str, limits: Limits = SHORT) -> Verdict:
    (verdict,) = judge_in(tier, [Step([job("hostile", code, tests, limits=limits)])])
    return verdict


@pytest.mark.parametrize("tier", TIERS)
def test_a_signal_without_a_name_is_a_failure(tier: str) -> None:
    """A signal that ``signal.Signals`` does not know must not end the run."""
    verdict = judged(tier, LATER_SIGNAL, "assert f(1) == 2")
    assert (verdict.status, verdict.reason) == ("fail", "signal"), verdict


@pytest.mark.parametrize("tier", TIERS)
def test_a_name_that_is_no_text_is_nobodys_problem(tier: str) -> None:
    """It must break neither the keeper nor, in tier landlock, workers that start afterwards."""
    assert judged(tier, ODD_NAME, "assert f(1) == 2").status == "pass"


@pytest.mark.parametrize("tier", TIERS)
def test_deep_answers_that_are_passed_back_are_the_programs_own(tier: str) -> None:
    """Tests that cannot send the argument must not make the sample invalid."""
    assert judged(tier, DEEP, "assert f(f(1)) == 1").status == "fail"


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
def test_calls_cannot_be_worked_on_before_their_time_counts(tier: str) -> None:
    """Time before the program says that it is loaded must not be free."""
    limits = Limits(cpu_s=5, wall_s=8, call_cpu_s=0.5)
    verdict = judged(tier, EARLY, "assert f(1) == 2\nassert f(2) == 3", limits)
    assert verdict.status == "fail", verdict


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("integrity", ["shared", "separated"])
def test_a_descriptor_in_flight_does_not_hold_the_keeper_up(
    tier: str, integrity: Integrity
) -> None:
    """The other end of the keeper's pipe is in a queue that nobody reads, and so never closes."""
    code = IN_FLIGHT.replace("@FD@", "3" if integrity == "shared" else "4")
    tests = f"assert f({'x' * 600_000!r}) == 1"
    limits = Limits(cpu_s=1, wall_s=1)
    hostile = job("hostile", code, tests, limits=limits, integrity=integrity)
    started = time.monotonic()
    (verdict,) = judge_in(tier, [Step([hostile])])
    assert verdict.status == "fail", verdict
    assert verdict.reason != "broke-worker", verdict
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("tier", TIERS)
def test_memory_counts_when_a_first_thread_has_ended(tier: str) -> None:
    """Without a cgroup, 360 MB could pass under a limit of 64."""
    verdict = judged(tier, LEADERS_END, "assert f() == 1", Limits(cpu_s=3, wall_s=4, memory_mb=64))
    assert (verdict.status, verdict.reason) == ("fail", "memory"), verdict


@pytest.mark.parametrize("tier", TIERS)
def test_standard_input_is_not_shared_with_the_next_program(tier: str) -> None:
    """Flags and locks of its open file carried any data from one program to the next."""
    jobs = [job("locks", LOCKS, "", "shared"), job("finds", FINDS_LOCKS, "", "shared")]
    verdicts = judge_in(tier, [Step([one]) for one in jobs])
    assert [v.status for v in verdicts] == ["pass", "pass"], verdicts


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("tier", TIERS)
def test_nothing_survives_a_killed_harness(tier: str) -> None:
    """Tier landlock has no pid namespace that ends a program's children."""
    uid = None if tier == "root" else ORDINARY_UID
    seconds = f"77.{os.getpid()}{NAMES.index(tier)}"
    python = SYSTEM_PYTHON if uid else sys.executable
    code = SURVIVORS.replace("@SECONDS@", seconds)
    process = subprocess.Popen(
        [python, "-c", f"{HARNESS}\nmain()", tier, "1", "tier"],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
        env={"PYTHONPATH": str(readable_source()), "PATH": os.environ["PATH"]},
        user=uid, group=uid, extra_groups=[] if uid else None, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(encode_steps([Step([job("s", code, limits=Limits(cpu_s=20, wall_s=60))])]))
    process.stdin.close()
    deadline = time.monotonic() + 20
    while not _running(seconds) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _running(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 5
    while _running(seconds) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _running(seconds)


def _running(seconds: str) -> bool:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found.append((process / "cmdline").read_bytes())
        except OSError:
            continue
    return f"sleep\0{seconds}\0".encode() in found
