"""CPU time is counted from outside, for a whole program and for one call."""

from __future__ import annotations

import pytest

from assay.types import Cases, Limits
from tests.security.in_tiers import COSTLY_TIERS, TIERS, Step, job, judge_in

MATCHER = "def matcher():\n    return lambda arguments, expected, got: got == expected\n"
CASES = Cases({"base": [[1]]}, {"base": [1]}, "calls")
BURN = """
import os, signal, sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
"""
# Each takes 3 s for a call that may take 1, and gives the right answer.
SLOW_CALLS = {
    "timer off": (
        "signal.setitimer(signal.ITIMER_PROF, 0)\n"
        "def f(x):\n    signal.setitimer(signal.ITIMER_PROF, 0)\n    burn(3)\n    return x\n"
    ),
    "signal ignored": (
        "def f(x):\n    signal.signal(signal.SIGPROF, signal.SIG_IGN)\n    burn(3)\n    return x\n"
    ),
    "signal blocked": (
        "def f(x):\n    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n    burn(3)\n"
        "    return x\n"
    ),
    "error swallowed": (
        "def f(x):\n    for _ in range(30):\n        try: burn(0.1)\n"
        "        except BaseException: pass\n    return x\n"
    ),
    "work in a child": (
        "def f(x):\n    child = os.fork()\n    if not child:\n        burn(3)\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n    return x\n"
    ),
    "work in a child that nobody waits for": (
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "def f(x):\n    near, far = os.pipe()\n    if not os.fork():\n        burn(3)\n"
        "        os._exit(0)\n    os.close(far)\n    os.read(near, 1)\n    return x\n"
    ),
    "limit in the judge's frame": (
        "def f(x):\n    frame = sys._getframe()\n    while frame := frame.f_back:\n"
        "        judge = frame.f_locals.get('self') or frame.f_locals.get('function')\n"
        "        for name in ('_cpu_s', '_looks', '_runs'):\n"
        "            if hasattr(judge, name): setattr(judge, name, 0)\n"
        "    burn(3)\n    return x\n"
    ),
}


@pytest.mark.parametrize("tier", COSTLY_TIERS)
def test_the_limit_of_one_call_is_not_the_programs_to_switch_off(tier: str) -> None:
    """With a timer in the program's own process as the limit, six of seven pass."""
    limits = Limits(cpu_s=20, call_cpu_s=1, wall_s=30)
    jobs = [
        job(name, BURN + code, MATCHER, cases=CASES, limits=limits)
        for name, code in SLOW_CALLS.items()
    ]
    honest = job("honest", BURN + "def f(x):\n    burn(0.2)\n    return x\n", MATCHER,
                 cases=CASES, limits=limits)  # fmt: skip
    verdicts = {v.task_id: v for v in judge_in(tier, [Step([honest, *jobs])], workers=2)}
    assert verdicts.pop("honest").status == "pass"
    assert {name: (v.status, v.reason) for name, v in verdicts.items()} == dict.fromkeys(
        SLOW_CALLS, ("fail", "timeout")
    )


UNSEEN = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
near, far = os.pipe()
for i in range(@COUNT@):
    if not os.fork():
        while time.process_time() < 0.25: pass
        os._exit(0)
    time.sleep(0.2)
os.close(far)
os.read(near, 1)  # until the last one has ended, which takes a while on a busy machine
def f(): return 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
def test_time_of_children_that_nobody_waits_for_is_counted(tier: str) -> None:
    """If they are not counted, 1 s is reported as 0.01, and 5 s pass with a limit of 2."""
    limits = Limits(cpu_s=2, wall_s=60)
    jobs = [job(count, UNSEEN.replace("@COUNT@", count), limits=limits) for count in ("4", "20")]
    few, many = sorted(judge_in(tier, [Step(jobs)]), key=lambda v: int(v.task_id))
    assert (few.status, many.status, many.reason) == ("pass", "fail", "timeout")
    assert few.cpu_s > 0.8
    assert many.cpu_s < 4
