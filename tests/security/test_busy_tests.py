"""Answers that keep the tests' own process busy in one step of C: the program fails, once."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from assay.benchmarks.support import excess_code
from assay.data import plain
from assay.sandbox import open_sandbox
from assay.sandbox.host import fork_servers
from assay.sandbox.host.worker import (
    BusyTestsError,
    ProcessWatch,
    Worker,
    WorkerLostError,
    WorkerServer,
)
from assay.sandbox.inside.isolation.machine import Busy
from assay.sandbox.inside.judging import wire
from assay.sandbox.inside.serving import container
from assay.sandbox.inside.serving.messages import TESTS_TOO_SLOW
from assay.sandbox.inside.serving.oracle import TooSlowError, limit_work
from assay.serve.fusion.languages import EndedRun, read_run
from assay.types import Cases, Job, Limits, Program, Tests
from assay.work.lock import ThreadRWLock
from tests.e2e.test_resume import Pid, descendants, survivors
from tests.security.forgeries_answers import COLLIDING, SPEAK
from tests.security.in_tiers import STRONGEST, TIERS, Step, job, judge_in

HONEST = "def f(x=0):\n    return 1\n"
# 40,000 colliding integers take 10 s of CPU time to hash where nothing ends that.
MANY = SPEAK + COLLIDING.format(count=40_000)
TESTS = {
    "set of the answer": ("f = lambda x=0: MANY\n", "assert set(f()) == {1}"),
    "keys of the answer": ("f = lambda x=0: MANY\n", "assert dict.fromkeys(f()) == {1: None}"),
    "counted": ("f = lambda x=0: MANY\n", "import collections as c\nassert not c.Counter(f())"),
    "values of a dict": (
        "f = lambda x=0: dict(enumerate(MANY[:30_000]))\n", "assert frozenset(f().values()) == {1}"
    ),
}  # fmt: skip
# The tests' own work may take 20 s; here the harness ends it after 1.25.
HURRY = "from assay.sandbox.host import local\nlocal.TESTS_CPU_S = 1.0"


@pytest.mark.parametrize("tier", TIERS)
def test_tests_in_one_long_step_of_c_are_ended(tier: str) -> None:
    """Otherwise its worker is lost by time three times, the last time with all others stopped."""
    jobs = [job(name, MANY + code, tests) for name, (code, tests) in TESTS.items()]
    jobs += [job(f"honest {number}", HONEST) for number in range(20)]
    verdicts = {v.task_id: v for v in judge_in(tier, [Step(jobs)], workers=2, before=HURRY)}
    for name in TESTS:
        verdict = verdicts.pop(name)
        found = (verdict.status, verdict.reason, verdict.detail, verdict.integrity)
        assert found == ("fail", "timeout", TESTS_TOO_SLOW, "separated"), verdict
    assert {v.status for v in verdicts.values()} == {"pass"}
    assert len(verdicts) == 20


@pytest.mark.parametrize("kind", ["set", "frozenset", "folded", "dict", "keys", "items"])
def test_containers_of_colliding_items_can_be_interrupted(kind: str) -> None:
    many = [number * (2**61 - 1) for number in range(30_000)]
    items = [[number, 0] for number in many] if kind in ("dict", "items") else many
    started = time.process_time()
    with pytest.raises(TooSlowError), limit_work(0.2):
        plain.decode({kind: items})
    assert time.process_time() - started < 2


@pytest.mark.parametrize("count", [0, 1, plain.AT_ONCE, plain.AT_ONCE + 1, 5000])
def test_containers_in_steps_are_those_of_one_step(count: int) -> None:
    items = [pow(7, number, 10_007) for number in range(count)]
    assert list(plain.decode({"set": items})) == list(set(items))
    assert list(plain.decode({"frozenset": items})) == list(frozenset(items))
    assert list(plain.decode({"folded": items})) == list(set(frozenset(items)))
    assert list(plain.decode({"dict": [[n, n] for n in items]})) == list(dict.fromkeys(items))


def test_the_harness_hashes_nothing_of_a_program() -> None:
    """Outputs of runs and measures are read as they are encoded, in a process without limits."""
    many = [number * (2**61 - 1) for number in range(30_000)]
    hostile: list[Any] = [{"set": many}, {"dict": [[number, 0] for number in many]}]
    files = [{"tuple": [{"frozenset": many}, {"bytearray": "61"}]}]
    empty = {"bytearray": ""}
    hostile += [{"tuple": [0, 0.5, {"set": many}, empty, []]}, [{"set": many}, 1]]
    hostile += [{"tuple": [0, 0.5, empty, {"bytearray": "zz"}, files]}]
    started = time.process_time()
    for value in hostile:
        cases = Cases({}, {"run": [value]}, "")
        assert read_run(cases) is None
        assert excess_code.excess_code({}).read(Cases({}, {excess_code.GROUP: [value]}, "")) is None
    assert time.process_time() - started < 1
    ended = read_run(
        Cases({}, {"run": [{"tuple": [3, 0.5, {"bytearray": "6869"}, empty, files]}]}, "")
    )
    assert isinstance(ended, EndedRun)
    assert (ended.exit_code, ended.output, [*ended.files.values()]) == (3, b"hi", [b"a"])


def test_a_worker_lost_by_time_does_not_stop_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something that never answers is tried twice, and never alone."""
    attempts: list[str] = []
    judge_apart = Worker.judge_apart

    def stopped(self: Worker, order: Any, *rest: Any) -> Any:
        if "STOPPED" not in order.task.program:
            return judge_apart(self, order, *rest)
        attempts.append(order.task.program)
        before = descendants(os.getpid())
        self._oracle = self._oracle or self._started_oracle()
        for pid in descendants(os.getpid()) - before:
            os.kill(pid, signal.SIGSTOP)
        return judge_apart(self, order, *rest)

    class RWLock(ThreadRWLock):
        @contextmanager
        def exclusive(self) -> Iterator[None]:
            attempts.append("alone")
            with super().exclusive():
                yield

    monkeypatch.setattr(Worker, "judge_apart", stopped)
    monkeypatch.setattr(fork_servers, "GRACE_S", 1.0)
    monkeypatch.setattr("assay.sandbox.host.local.CLEAN_UP_S", 1.0)  # what is stopped never ends
    monkeypatch.setattr("assay.sandbox.host.warm.ThreadRWLock", RWLock)
    sandbox = open_sandbox("process", 1)
    tests, limits = Tests("f", "assert f() == 1", integrity="separated"), Limits(wall_s=0.5)
    (verdict,) = sandbox.judge([Job("t", 0, Program("# STOPPED\n" + HONEST, "x"), tests, limits)])
    sandbox.close()
    assert (verdict.status, verdict.reason) == ("fail", "broke-worker"), verdict
    assert len(attempts) == 2
    assert "alone" not in attempts


@pytest.mark.parametrize(("code", "works"), [("while True: pass", True), ("input()", False)])
def test_a_container_reports_tests_that_used_up_their_time(
    code: str, works: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first process looks at them: the harness may not see what runs in a container."""
    said: list[bytes] = []
    monkeypatch.setattr(wire, "write", lambda _descriptor, data: said.append(data))
    signs = set()
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as oracle:
        time.sleep(1.0)  # it starts
        watch = Busy(oracle.pid, 0.5, container.BusyError())
        deadline = time.monotonic() + (60 if works else 1)
        with contextlib.suppress(EOFError):
            while time.monotonic() < deadline:
                signs.add(container._look_at(watch))
                time.sleep(0.1)
        oracle.kill()
    assert signs == {wire.frame(b"o", b"") if works else b""}
    assert len(said) == works

    class Ended(WorkerServer):
        def receive_any(self, deadline: float, *looks: ProcessWatch | None) -> str:  # noqa: ARG002
            return str(json.loads(said[0][9:])) if said else "it ended"

    with pytest.raises(WorkerLostError) as raised:
        Ended().receive(0.0)
    assert isinstance(raised.value, BusyTestsError) is works


@pytest.mark.parametrize("tier", [STRONGEST, pytest.param("landlock", marks=pytest.mark.slow)])
def test_busy_tests_do_not_survive_their_harness(tier: str) -> None:
    """The first process of a pid namespace ignores a timer's signal that is to end it."""
    code = MANY + "def f():\n    return MANY\n"
    script = f"""
from assay.sandbox import open_sandbox
from assay.types import *
tests = Tests("f", "assert set(f()) == {{1}}", integrity="separated")
sandbox = open_sandbox("process", 1, {tier!r})
list(sandbox.judge([Job("t", 0, Program({code!r}, "x"), tests)]))
"""
    harness = subprocess.Popen([sys.executable, "-c", script])
    try:
        deadline = time.monotonic() + 60
        while not (family := busy_descendants(harness.pid)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert family
    finally:
        harness.kill()
        harness.wait()
    assert survivors(family, 8.0) == []


def busy_descendants(pid: int) -> set[Pid]:
    """Return all processes below one, once one of them has computed for a while."""
    family = descendants(pid)
    used = 0.0
    for one in family:
        try:
            clock = (~one << 3) | 2  # of another process, as clock_getcpuclockid(3) has it
            used = max(used, time.clock_gettime(clock))
        except OSError:  # it has ended
            continue
    return family if used > 2 else set()
