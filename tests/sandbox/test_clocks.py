"""Clocks of CPU time: of processes, of what the keeper publishes, of the oracle."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from assay.sandbox.inside.isolation.clock import FOR_EVER, Clock, PublishedClock
from assay.sandbox.inside.isolation.tree import Tree, exact_cpu_s
from assay.sandbox.inside.serving.oracle import TooSlowError, limit_work
from tests.security.neighbours import CPU, napping_neighbour

BURN = "import time\nwhile time.process_time() < 0.3: pass\n"
THREAD = (
    "import threading, time\ndef work():\n    while time.process_time() < 0.3: pass\n"
    "thread = threading.Thread(target=work)\nthread.start()\nthread.join()\n"
)


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


@contextmanager
def ended_child(code: str) -> Iterator[int]:
    """Start a process of our own that ends, and wait for it only after the block."""
    child = subprocess.Popen([sys.executable, "-S", "-c", code])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        yield child.pid
    finally:
        child.wait()


@pytest.mark.parametrize("code", [BURN, THREAD], ids=["one thread", "two"])
def test_time_of_a_process_is_exact_also_after_its_end(code: str) -> None:
    with ended_child(code) as pid:
        assert 0.3 <= exact_cpu_s(pid) < 0.45


def test_time_of_children_counts_once_they_are_waited_for() -> None:
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-S', '-c', {BURN!r}])\n"
    with ended_child(code) as pid:
        assert exact_cpu_s(pid) < 0.2
        assert 0.28 <= Tree().cpu_s([pid]) < 0.6


def test_a_process_that_is_gone_has_no_time() -> None:
    with ended_child("") as pid:
        pass
    assert exact_cpu_s(pid) == 0.0


def test_settle_waits_for_what_was_used_by_now() -> None:
    published = PublishedClock()
    reader = Clock(published.descriptor, published.kind)
    published.publish(1.0, time.monotonic_ns())
    assert reader.now_s() == 1.0
    later = threading.Timer(0.1, lambda: published.publish(2.0, time.monotonic_ns()))
    later.start()
    assert reader.lag_s() < 0.1
    reader.settle()
    assert reader.now_s() == 2.0
    published.publish(3.0, FOR_EVER)  # the program has ended
    assert reader.lag_s() == 0.0
    reader.settle()
    assert reader.now_s() == 3.0


def test_settle_does_not_wait_for_ever_for_a_keeper_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("assay.sandbox.inside.isolation.clock.SETTLE_S", 0.05)
    published = PublishedClock()
    started = time.monotonic()
    published.settle()
    assert 0.04 < time.monotonic() - started < 5


@pytest.fixture
def on_one_cpu() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {CPU})
    yield
    os.sched_setaffinity(0, before)


@pytest.mark.slow
@pytest.mark.usefixtures("on_one_cpu")
def test_the_tests_own_work_is_limited_by_exact_time() -> None:
    """A clock that counts ticks reports 0.9 of the limit as too much beside a busy neighbour."""
    with napping_neighbour():
        with limit_work(1):
            burn(0.9)
        with pytest.raises(TooSlowError), limit_work(1):
            burn(1.1)
    burn(0.1)  # no timer is left
