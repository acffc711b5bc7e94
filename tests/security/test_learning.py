"""One sample does not teach the next, by no counter that survives a program; and no seed is known.

Counters that a program could read: process ids, the inode of a pidfd, times, faults and context
switches of pid 1, network counters, and whether a page of a file is in the page cache. With process
ids alone, the sixth of eight samples passes a task without a look at its argument.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

from assay.types import Limits, Verdict
from tests.security.counters import READERS, consumer, reader
from tests.security.in_tiers import COSTLY_TIERS, TIERS, Step, assert_all_failed, job, judge_in

BITS = [1] * 8 + [0] * 8
# Numbers that the kernel gives to all processes of the machine; no namespace has its own.
GLOBAL = {"inode of a pipe", "inode of a socket", "socket cookie"}
LISTED = {
    "root": GLOBAL,
    "user": GLOBAL,
    # Without a pid namespace, process ids are the machine's.
    "landlock": {*GLOBAL, "process id", "process id of a child", "process group and session"},
}


def teaching_steps(names: list[str], bits: list[int]) -> list[Step]:
    """Return a reader, then for each bit a consumer and the same reader."""
    read = job("read", reader(names), limits=Limits(cpu_s=4, wall_s=10))
    steps = [Step([read])]
    for bit in bits:
        steps += [Step([job("consume", consumer(bit))]), Step([read])]
    return steps


def values(verdict: Verdict) -> list[int]:
    assert verdict.detail.startswith("LookupError: "), verdict
    words = verdict.detail.removeprefix("LookupError: ").partition(" (line")[0].split()
    return [int(word, 16) for word in words]


def tells_bits(series: list[int], bits: list[int]) -> bool:
    """Return whether the changes of a number, or the number itself, sort the bits apart."""
    changes = [after - before for before, after in itertools.pairwise(series)]
    for numbers in (changes, list(map(abs, changes)), series[1:]):
        ones = [n for n, bit in zip(numbers, bits, strict=True) if bit]
        zeros = [n for n, bit in zip(numbers, bits, strict=True) if not bit]
        if min(ones) > max(zeros) or max(ones) < min(zeros):
            return True
    return False


def leaking(tier: str, names: list[str]) -> set[str]:
    """Return the readers that see what the program before did."""
    bits = random.sample(BITS, len(BITS))
    verdicts = judge_in(tier, teaching_steps(names, bits))
    assert all(v.status == "pass" for v in verdicts if v.task_id == "consume"), verdicts
    rows = [values(v) for v in verdicts if v.task_id == "read"]
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return {name for name, series in columns if tells_bits(list(series), bits)}


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
def test_no_counter_survives_a_program(tier: str) -> None:
    """A program uses up a lot or nothing; the next must not be able to tell which.

    What seems to leak is tried again, since 16 bits may fall into place by chance.
    """
    candidates = leaking(tier, list(READERS)) - LISTED[tier]
    if candidates:
        assert leaking(tier, sorted(candidates)) == set()


# Guesses "prime" until it is stopped, and leaves where that was in the number of the last process:
# bit k of it says that the k-th answer is "not prime". It never looks at its argument. Only one
# number in 7 is taken for a code, so that a process id of the machine is the right one for one
# program in 8,192: for a run of eight, once in 1,024.
LEARNER = """
import _thread, os, time
RANGE, SPREAD, CHECK, FIRST = 1 << 13, 7, 5, 64
code, check = divmod((os.getpid() - 1 - FIRST) % RANGE, SPREAD)
known = code if check == CHECK and os.getpid() > FIRST else 0
last, calls = os.getpid(), 0

def leave(code):
    global last
    while (last - FIRST) % RANGE != code * SPREAD + CHECK:
        ids = []
        try: _thread.start_new_thread(lambda: ids.append(_thread.get_native_id()), ())
        except RuntimeError: time.sleep(0.001); continue
        while not ids: time.sleep(0)
        last = ids[0]

def is_prime(number):
    global calls
    call, calls = calls, calls + 1
    if calls > 1: time.sleep(0.05)  # if the answer before was wrong, this is the end
    if known >> call & 1: return False
    if call >= known.bit_length(): leave(known | 1 << call)
    return True
"""
NUMBERS = {9: False, 97: True, 13: True, 7919: True, 55: False, 8: False, 7: True, 19: True,
           91: False, 1003: False}  # fmt: skip
PRIMES = "\n".join(f"assert is_prime({number}) is {prime}" for number, prime in NUMBERS.items())


class Counter:
    """Stand for the modules by which a learner reads and moves the number of the last process."""

    def __init__(self) -> None:
        self.last = 1

    def getpid(self) -> int:
        return self.last

    get_native_id = getpid

    def start_new_thread(self, function: Callable[[], None], _arguments: object) -> None:
        self.last += 1
        function()

    def sleep(self, _seconds: float) -> None: ...


def test_the_learner_learns_where_numbers_survive() -> None:
    """With a counter that survives, and an end at the first wrong answer, the sixth passes."""
    counter, passed = Counter(), []
    code = LEARNER.replace("import _thread, os, time\n", "")
    for _ in range(8):
        counter.last += 1
        program: dict[str, Any] = {"_thread": counter, "os": counter, "time": counter}
        exec(code, program)
        passed.append(all(program["is_prime"](n) == prime for n, prime in NUMBERS.items()))
    assert passed[:6] == [False] * 5 + [True]


@pytest.mark.parametrize("tier", COSTLY_TIERS)
def test_eight_samples_do_not_teach_each_other(tier: str) -> None:
    """If process ids survive a program, the sixth sample passes."""
    samples = [
        job("learner", LEARNER, PRIMES, entry_point="is_prime", sample=i, limits=Limits(wall_s=20))
        for i in range(8)
    ]
    verdicts = judge_in(tier, [Step([sample]) for sample in samples])
    assert len(verdicts) == 8
    assert_all_failed(verdicts)


# Leaves which of its answers were wrong in the inode number of the last pipe, which the kernel
# counts for the whole machine. It knows them by the calls that only a failed assertion makes.
ASKED_AGAIN = """
import os
STEP, CODES, PER_CPU, MAGIC = 1024, 1024, 1100, 5 << 7

def inode():
    ends = os.pipe()
    number = os.fstat(ends[0]).st_ino
    for end in ends: os.close(end)
    return number

for _ in range(PER_CPU): inode()  # past the numbers that this CPU has in store
found = inode() // STEP % CODES
known = found & 127 if found & 7 << 7 == MAGIC else 0
calls, before, wrong = 0, None, 0

def is_prime(number):
    global calls, before, wrong
    if number == before:
        wrong |= 1 << calls - 1
        while inode() // STEP % CODES != known ^ wrong | MAGIC: pass
        return True
    before, calls = number, calls + 1
    return not known >> calls - 1 & 1
"""


@pytest.mark.parametrize("tier", TIERS)
def test_messages_of_failed_assertions_do_not_call_the_program(tier: str) -> None:
    """If they call it, the second sample passes; six tasks of HumanEval have such messages.

    Twice with other numbers: a channel teaches both, chance teaches one of them in 250 runs.
    """
    taught = []
    for numbers in ([9, 97, 13, 55, 8, 7, 91], [97, 9, 55, 13, 91, 8, 7]):
        tests = "\n".join(
            f"assert is_prime({n}) is {NUMBERS[n]}, f'wrong: {{is_prime({n})}}'" for n in numbers
        )
        limits = Limits(cpu_s=20, wall_s=60)
        samples = [
            job("asks", ASKED_AGAIN, tests, entry_point="is_prime", sample=i, limits=limits)
            for i in range(3)
        ]
        verdicts = judge_in(tier, [Step([sample]) for sample in samples])
        assert {v.status for v in verdicts} <= {"pass", "fail"}
        taught.append(any(v.status == "pass" for v in verdicts))
    assert taught != [True, True]


DRAWN = """
import random
for _ in range(6):
    n = random.randint(0, 10**6)
    assert f(n) == n + 1
"""
PREDICTS = """
import random
random.seed(@SEED@)
answers = iter([random.randint(0, 10**6) + 1 for _ in range(6)])
def f(n): return next(answers)
"""


@pytest.mark.parametrize("tier", TIERS)
def test_drawn_inputs_cannot_be_predicted(tier: str) -> None:
    """With a known seed, the program that replays it passes."""
    seeds = ("0", "1", "42", "None", "'0'", "b''", "''", "0.0")
    forged = [job(f"seed {s}", PREDICTS.replace("@SEED@", s), DRAWN) for s in seeds]
    inherited = PREDICTS.replace("random.seed(@SEED@)\n", "")
    forged.append(job("inherited state", inherited, DRAWN))
    honest = job("honest", "def f(n): return n + 1", DRAWN)
    verdicts = judge_in(tier, [Step([honest, *forged])])
    assert next(v for v in verdicts if v.task_id == "honest").status == "pass"
    assert_all_failed([v for v in verdicts if v.task_id != "honest"])
