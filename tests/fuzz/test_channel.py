"""Random and mutated messages on the channel between a program and the oracle.

Whatever a program sends, it does not pass, it does not become invalid, and the next program in its
worker is judged as it should be. Attacks that random messages do not find in short runs are in
``tests/security/forgeries_answers.py``.
"""

from __future__ import annotations

import os
import random
import time

import pytest

from assay.sandbox import open_sandbox
from assay.types import Cases, Job, Limits, Program, Tests
from tests.security.in_tiers import assert_all_failed

FUZZ_S = 20.0
BATCH = 16
LIMITS = Limits(cpu_s=1, wall_s=2, call_cpu_s=1)

FUZZER = r"""
import json, os, random, select, stat, struct, time
R = random.Random(@SEED@)
CHANNELS = []
for fd in range(3, 1024):
    try: mode = os.fstat(fd).st_mode
    except OSError: continue
    if stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode): CHANNELS.append(fd)

TAGS = ('tuple', 'dict', 'set', 'frozenset', 'deque', 'keys', 'values', 'items', 'iterator', 'int',
        'bytes', 'bytearray', 'range', 'complex', 'Decimal', 'Fraction', 'array', 'large', 'type',
        'opaque', 'list', 'raised', 'reason', 'detail', 'status', 'sandbox_error', 'ended', '')
LEAVES = (None, True, False, 0, 1, -1, 1.5, 1e308, -0.0, 10**30, 2**64, "", "x", "0x10", "ff",
          'nan', 'int', 'pass', '\ud800', '\0', [], {}, [[]], 'e' * 70, float('nan'), float('inf'))

def value(depth=0):
    kind = R.random()
    if depth > 5 or kind < 0.35: return R.choice(LEAVES)
    if kind < 0.65: return [value(depth + 1) for _ in range(R.randrange(5))]
    if kind < 0.9: return {R.choice(TAGS): value(depth + 1)}
    return {R.choice(TAGS): value(depth + 1) for _ in range(R.randrange(4))}

def answers():
    kind = R.random()
    if kind < 0.5: return [R.choice(LEAVES), [[value()] for _ in range(R.randrange(6))]]
    if kind < 0.7: return [0.0, [{'raised': value(), 'reason': value(), 'detail': value()}]]
    if kind < 0.8: return {'status': 'pass', 'reason': 'passed', 'detail': '', 'failing_test': ''}
    return value()

def message():
    kind = R.random()
    if kind < 0.1: body = R.randbytes(R.choice((0, 1, 3, 4, 5, 64, 4096)))
    else: body = json.dumps(answers()).encode()
    if kind > 0.9: body = body[: R.randrange(len(body) + 1)]
    length = len(body)
    if R.random() < 0.1: length = R.choice((0, 1, length + 1, length * 2, 1 << 31, (1 << 32) - 1))
    data = bytearray(struct.pack(R.choice(('>I',) * 9 + ('<I',)), length) + body)
    for _ in range(R.choice((0, 0, 0, 1, 3, 30))):
        if data: data[R.randrange(len(data))] = R.randrange(256)
    return bytes(data)

def send():
    data = b''.join(message() for _ in range(R.choice((1, 1, 2, 9, 200))))
    for fd in CHANNELS:
        pieces = [data] if R.random() < 0.8 else [data[i : i + 1] for i in range(len(data))]
        for piece in pieces:
            try:
                if not select.select([], [fd], [], 0.2)[1]: break
                os.write(fd, piece[:60000])
            except OSError: break

style = R.randrange(6)
if style == 0: send()
if style == 1:
    send()
    os._exit(R.choice((0, 1)))
if style == 2:
    end = time.monotonic() + 0.5
    while time.monotonic() < end: send()
if style == 3 and not os.fork():
    end = time.monotonic() + 0.5
    while time.monotonic() < end: send()
    os._exit(0)
def f(*arguments):
    if style == 4: send()
    if style == 5:
        send()
        raise ValueError(value())
    return R.choice(LEAVES)
"""
MATCHER = "def matcher():\n    return lambda arguments, expected, got: got == expected\n"


def make_tests(secret: int, number: int) -> Tests:
    """Return tests of one of the two kinds: code, or cases."""
    if number % 2:
        code = f"assert f({number}) == {secret}\nfor n in range(3):\n    assert f(n) == {secret}\n"
        return Tests("f", code, integrity="separated")
    inputs, expected = [[[1]], [[2]], [[3]]], [secret] * 3
    cases = Cases({"base": inputs}, {"base": expected}, f"{secret}")
    return Tests("f", MATCHER, integrity="separated", cases=cases)


@pytest.mark.fuzz
def test_whatever_is_sent_nothing_passes_and_nobody_suffers() -> None:
    randomness = random.Random(os.urandom(8))
    sandbox = open_sandbox("process", workers=2)
    deadline = time.monotonic() + FUZZ_S
    hostile = 0
    while time.monotonic() < deadline:
        jobs, seeds = [], []
        for number in range(BATCH):
            seeds.append(randomness.getrandbits(48))
            code = FUZZER.replace("@SEED@", str(seeds[-1]))
            tests = make_tests(randomness.getrandbits(60), number)
            jobs.append(Job(f"seed {seeds[-1]}", 0, Program(code, "x"), tests, LIMITS))
        assert_all_failed(list(sandbox.judge(jobs)))
        hostile += len(jobs)
        secret = randomness.getrandbits(60)
        honest = Program(f"def f(x): return {secret}", "x")
        checks = [Job("honest", i, honest, make_tests(secret, i), LIMITS) for i in range(4)]
        assert {v.status for v in sandbox.judge(checks)} == {"pass"}
    sandbox.close()
    assert hostile >= BATCH
