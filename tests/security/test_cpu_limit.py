"""CPU time is measured exactly: what others do on the machine moves no program across its limit.

The kernel's own limit, RLIMIT_CPU, counts a whole tick for the process that a tick happens to hit.
A neighbour that works and naps in turns shifts ticks to the program beside it: it is charged 1.2
times what it has used, up to 1.6, and beside other neighbours 0.4.
"""

from __future__ import annotations

import pytest

from assay.types import Cases, Job, Limits, Verdict
from tests.security.in_tiers import COSTLY_TIERS, TIERS, Step, job, judge_in
from tests.security.neighbours import PINNED, napping_neighbour

LIMITS = Limits(cpu_s=1, wall_s=30)
CALL_LIMITS = Limits(cpu_s=20, call_cpu_s=1, wall_s=30)
MATCHER = "def matcher():\n    return lambda arguments, expected, got: got == expected\n"
CASES = Cases({"base": [[]]}, {"base": [1]}, "one call")
BURN = """
import os, resource, signal, time
def burn(seconds):
    while time.process_time() < seconds: pass
"""
IN_CALL = BURN + "def f():\n    burn(@S@)\n    return 1\n"
BEFORE_CALL = BURN + "burn(@S@)\ndef f():\n    return 1\n"
IN_CHILDREN = BURN + (
    "def f():\n    for _ in range(2):\n        child = os.fork()\n        if not child:\n"
    "            burn(@S@ / 2)\n            os._exit(0)\n        os.waitpid(child, 0)\n"
    "    return 1\n"
)


def jobs_that_use(seconds: float) -> list[Job]:
    """Return programs that use so much of one second, and of a call that may take one."""

    def code(text: str) -> str:
        return text.replace("@S@", str(seconds))

    return [
        job("shared", code(BEFORE_CALL), integrity="shared", limits=LIMITS),
        job("separated", code(IN_CALL), limits=LIMITS),
        job("children", code(IN_CHILDREN), limits=LIMITS),
        job("one call", code(IN_CALL), MATCHER, cases=CASES, limits=CALL_LIMITS),
    ]


def judge_beside(tier: str, jobs: list[Job]) -> dict[str, Verdict]:
    with napping_neighbour():
        return {v.task_id: v for v in judge_in(tier, [Step(jobs)], before=PINNED)}


@pytest.mark.parametrize("tier", COSTLY_TIERS)
def test_nine_tenths_of_the_limit_pass_beside_a_neighbour(tier: str) -> None:
    """Counted in ticks, two or three of four fail in each tier ("used 1 s of CPU time")."""
    verdicts = judge_beside(tier, jobs_that_use(0.9))
    assert {name: (v.status, v.detail) for name, v in verdicts.items()} == dict.fromkeys(
        ("shared", "separated", "children", "one call"), ("pass", "")
    )


@pytest.mark.parametrize("tier", COSTLY_TIERS)
def test_eleven_tenths_of_the_limit_fail_beside_a_neighbour(tier: str) -> None:
    verdicts = judge_beside(tier, jobs_that_use(1.1))
    assert {name: (v.status, v.reason, v.detail) for name, v in verdicts.items()} == {
        "shared": ("fail", "timeout", "used 1 s of CPU time"),
        "separated": ("fail", "timeout", "used 1 s of CPU time"),
        "children": ("fail", "timeout", "used 1 s of CPU time"),
        "one call": ("fail", "timeout", "used 1 s of CPU time in one call"),
    }


# Each needs 3 s or more where 1 is allowed.
GREEDY = {
    "signal caught": "signal.signal(signal.SIGXCPU, lambda *_: None)\nburn(3)\n",
    "signal ignored": "signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nburn(3)\n",
    "signal blocked": "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nburn(3)\n",
    "limit raised": (
        "hard = resource.getrlimit(resource.RLIMIT_CPU)[1]\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))\nburn(3)\n"
    ),
    "a chain of processes, each the last one's child": (
        "for _ in range(15):\n    burn(0.2)\n    child = os.fork()\n    if child:\n"
        "        os.waitpid(child, 0)\n        break\n"
    ),
    "a chain of orphans": (
        "near, far = os.pipe()\nif not os.fork():\n    for _ in range(15):\n        burn(0.2)\n"
        "        if os.fork(): os._exit(0)\n    os.write(far, b'x')\n    os._exit(0)\n"
        "os.read(near, 1)\n"
    ),
    "threads": (
        "import threading\nworkers = [threading.Thread(target=burn, args=(3,)) for _ in range(4)]\n"
        "for worker in workers: worker.start()\nfor worker in workers: worker.join()\n"
    ),
}


@pytest.mark.parametrize("tier", COSTLY_TIERS)
def test_no_program_gains_time(tier: str) -> None:
    jobs = [
        job(name, f"{BURN}{code}def f():\n    return 1\n", limits=LIMITS)
        for name, code in GREEDY.items()
    ]
    verdicts = {v.task_id: v for v in judge_in(tier, [Step(jobs)], workers=2)}
    assert {name: (v.status, v.reason) for name, v in verdicts.items()} == dict.fromkeys(
        GREEDY, ("fail", "timeout")
    )
    assert {name: v.cpu_s for name, v in verdicts.items() if v.cpu_s > 2} == {}


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
def test_a_signal_is_not_a_timeout(tier: str) -> None:
    """The CPU time decides, not the signal: 0.85 s is below the limit of 1 s."""
    code = BURN + "burn(0.85)\nos.kill(os.getpid(), signal.@NAME@)\n"
    names = ("SIGXCPU", "SIGKILL")
    jobs = [job(name, code.replace("@NAME@", name), limits=LIMITS) for name in names]
    verdicts = {v.task_id: v for v in judge_in(tier, [Step(jobs)], workers=2)}
    assert {name: (v.reason, v.detail) for name, v in verdicts.items()} == {
        name: ("signal", f"ended by {name}") for name in names
    }
