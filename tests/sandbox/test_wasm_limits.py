"""WebAssembly: whose time is counted, which call took too long, and what is lost with a worker."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from assay.data.plain import encode
from assay.sandbox import open_sandbox
from assay.sandbox.host import warm
from assay.sandbox.host.fork_servers import TOO_BUSY, for_oracle
from assay.sandbox.inside.judging.messages import Task
from assay.sandbox.kinds import wasm
from assay.sandbox.wasm import component
from assay.sandbox.wasm.exchange import GuestLimits, GuestReport, GuestRequest
from assay.types import Cases, Job, Limits, Program, Tests, Verdict
from tests.busy_processes import busy_processes

pytest.importorskip("wasmtime", reason="needs wasmtime: pip install 'assay-eval[wasm]'")
pytestmark = [pytest.mark.slow, pytest.mark.wasm]

needs_schedstat = pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="needs Linux's schedstat"
)
RIGHT = "def f(x): return x + 1"
ENDLESS = "def f(x):\n    while x == 4:\n        pass\n    return x + 1"
WORKS = "import time\ndef work(s):\n    end = time.monotonic() + s\n"
WORKS += "    while time.monotonic() < end: pass\n"
MATCHER = "def matcher(): return lambda arguments, expected, got: got == expected"
INPUTS = {"base": [[1], [2]], "plus": [[3], [4], [5]]}


@pytest.fixture
def sandbox() -> Iterator[wasm.WasmSandbox]:
    opened = open_sandbox("wasm", 1)
    assert isinstance(opened, wasm.WasmSandbox)
    yield opened
    opened.close()


def cases(inputs: dict[str, list[list[int]]]) -> Tests:
    encoded = {group: list(map(encode, calls)) for group, calls in inputs.items()}
    expected = {group: [x + 1 for (x,) in calls] for group, calls in inputs.items()}
    return Tests("f", MATCHER, "", "separated", Cases(encoded, expected, str(encoded)))


def judged(
    sandbox: wasm.WasmSandbox, code: str, tests: Tests | None = None, **limits: float
) -> Verdict:
    tests = tests or Tests("f", "assert f(1) == 2", integrity="separated")
    job = Job("t", 0, Program(code, ""), tests, Limits(**limits))  # type: ignore[arg-type]
    (verdict,) = sandbox.judge([job])
    return verdict


def pids(sandbox: wasm.WasmSandbox) -> list[int]:
    return [worker._process.pid for worker in sandbox._alive]


def heard_of(code: str, tests: Tests, cpu_s: float) -> GuestReport:
    """What a worker's machine says, in this very process."""
    from assay.sandbox.wasm.worker import WasmMachine

    machine = WasmMachine(str(component.compiled(lambda _: None)))
    task = Task(preamble="", program=code, tests="", entry_point="f", abridged=True)
    limits = GuestLimits(cpu_s, call_cpu_s=0, slower=3, wall_s=60, memory_mb=512)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        return machine.judged(GuestRequest(task, "k", for_oracle(tests).decode(), "", limits))
    finally:  # a worker limits its own memory, and the tests after these need more
        resource.setrlimit(resource.RLIMIT_DATA, before)


def test_the_time_of_a_program_is_not_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.sandbox.wasm.worker.TESTS_CPU_S", 0.6)
    slow = f"{WORKS}def f(x):\n    work(0.4)\n    return x + 1"
    right = heard_of(slow, cases(INPUTS), 60)
    assert right.result is not None
    assert right.result.status == "pass", right
    endless = heard_of(ENDLESS, cases(INPUTS), 2)
    assert endless.ended == "cpu", endless
    one_by_one = "for x in range(5):\n    assert f(x) == x + 1"
    right = heard_of(slow, Tests("f", one_by_one, integrity="separated"), 60)
    assert right.result is not None
    assert right.result.status == "pass", right
    busy = Tests("f", "f(1)\nwhile True: pass", integrity="separated")
    assert heard_of(RIGHT, busy, 60).ended == "busy tests"


def test_programs_of_timed_tasks_are_judged_alone(
    sandbox: wasm.WasmSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def exclusive_for(most_s: float) -> AbstractContextManager[None]:
        asked.append(most_s)
        return sandbox._alone.exclusive()

    monkeypatch.setattr(sandbox._alone, "exclusive_for", exclusive_for)
    tests = Tests("f", "assert f(1) == 2", integrity="separated")
    jobs = [Job("t", n, Program(RIGHT, ""), tests, alone=n == 1) for n in range(3)]
    assert {verdict.status for verdict in sandbox.judge(jobs)} == {"pass"}
    assert asked == [warm.ALONE_S]


def test_a_call_has_a_limit_of_its_own(sandbox: wasm.WasmSandbox) -> None:
    verdict = judged(sandbox, ENDLESS, cases(INPUTS), cpu_s=100, wall_s=200, call_cpu_s=0.3)
    assert (verdict.status, verdict.reason) == ("fail", "timeout"), verdict
    assert verdict.failing_test == "f(4)"
    assert verdict.detail == "used 0.3 s of CPU time in one call"
    assert verdict.groups == {"base": (2, 2), "plus": (1, 3)}
    assert verdict.cpu_s < 5


def test_many_calls_within_the_limit_of_each_pass(sandbox: wasm.WasmSandbox) -> None:
    code = f"{WORKS}def f(x):\n    work(0.3)\n    return x + 1"
    inputs = {"base": [[n] for n in range(10)]}
    assert judged(sandbox, code, cases(inputs), call_cpu_s=0.2).status == "pass"


def test_an_endless_call_is_named_without_a_limit_of_its_own(sandbox: wasm.WasmSandbox) -> None:
    verdict = judged(sandbox, ENDLESS, cases(INPUTS), cpu_s=1)
    assert (verdict.status, verdict.reason) == ("fail", "timeout"), verdict
    assert verdict.failing_test == "f(4)"
    first = judged(sandbox, ENDLESS, cases({"base": [[1]], "plus": [[4], [5]]}), cpu_s=1)
    assert first.failing_test == "f(4)", first
    code = Tests("f", "assert f(4) == 5", integrity="separated")
    assert judged(sandbox, ENDLESS, code, cpu_s=1).failing_test == "f(4)"


def test_who_remembers_what_it_did_is_a_failure_all_the_same(sandbox: wasm.WasmSandbox) -> None:
    """Called anew, such a program would not loop."""
    code = "seen = []\ndef f(x):\n    seen.append(x)\n    while 2 in seen: pass\n    return x + 1"
    verdict = judged(sandbox, code, cases(INPUTS), call_cpu_s=0.3)
    assert (verdict.status, verdict.reason) == ("fail", "timeout"), verdict


def test_a_failed_program_is_counted_on(sandbox: wasm.WasmSandbox) -> None:
    """Also a slow one: no call tells a program whether its last answer was right."""
    inputs = {"base": [[n] for n in range(4)], "plus": [[n] for n in range(4, 40)]}
    quick = judged(sandbox, "def f(x): return x + (x != 1)", cases(inputs))
    assert quick.groups == {"base": (3, 4), "plus": (36, 36)}
    slow = f"{WORKS}def f(x):\n    work(0.1)\n    return x + (x != 1)"
    verdict = judged(sandbox, slow, cases(inputs), cpu_s=100)
    assert (verdict.reason, verdict.failing_test) == ("wrong-answer", "f(1)"), verdict
    assert verdict.groups == quick.groups


def test_a_wrong_answer_stays_one_when_the_program_ends_later(sandbox: wasm.WasmSandbox) -> None:
    code = f"import os\n{WORKS}def f(x):\n    if x == 4: os._exit(0)\n    return work(0.1)"
    verdict = judged(sandbox, code, cases(INPUTS))
    assert (verdict.reason, verdict.failing_test) == ("wrong-answer", "f(1)"), verdict


@contextmanager
def on_a_busy_core(worker: int) -> Iterator[None]:
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(worker, {core})
    with busy_processes(3) as hogs:
        for hog in hogs:
            os.sched_setaffinity(hog, {core})
        yield


@needs_schedstat
def test_waiting_for_a_core_is_not_idling(sandbox: wasm.WasmSandbox) -> None:
    (worker,) = pids(sandbox)
    code = f"{WORKS}def f(x):\n    work(3.5)\n    return x + 1"
    with on_a_busy_core(worker):
        verdict = judged(sandbox, code, wall_s=1.0)
    assert verdict.status == "pass", verdict
    assert verdict.wall_s - verdict.cpu_s > 1.0, "nobody had to wait"
    assert pids(sandbox) == [worker]


@needs_schedstat
def test_who_gets_too_little_of_a_core_is_tried_again(sandbox: wasm.WasmSandbox) -> None:
    (worker,) = pids(sandbox)
    code = f"{WORKS}def f(x):\n    work(3)\n    return x + 1"
    with on_a_busy_core(worker):
        verdict = judged(sandbox, code, wall_s=0.3)
    assert verdict.status == "pass" or TOO_BUSY in verdict.detail, verdict
    assert pids(sandbox) != [worker], "nobody had to wait"


@pytest.mark.parametrize("first", ["import os\nos._exit(0)", "while True: pass", "def f(x:"])
def test_tests_are_known_however_the_first_program_ends(
    sandbox: wasm.WasmSandbox, first: str
) -> None:
    worker = pids(sandbox)
    assert judged(sandbox, first, cpu_s=0.3).status == "fail"
    assert judged(sandbox, RIGHT).status == "pass"
    assert pids(sandbox) == worker, "it was judged again"


def test_a_program_cannot_ask_the_one_before(sandbox: wasm.WasmSandbox) -> None:
    assert judged(sandbox, RIGHT).status == "pass"
    asks = (
        "import marshal, wit_world\n"
        "asked = (b'm' + marshal.dumps([((1,), {})])).decode('latin-1')\n"
        "heard = wit_world.call(asked)\n"
        "def f(x): return 2 + len(heard) + len(wit_world.call(asked))\n"
    )
    assert judged(sandbox, asks).status == "pass"


def test_a_worker_that_is_killed_costs_no_verdict(sandbox: wasm.WasmSandbox) -> None:
    (worker,) = pids(sandbox)
    os.kill(worker, signal.SIGKILL)
    assert judged(sandbox, RIGHT).status == "pass"
    assert worker not in pids(sandbox)
    assert len(sandbox._alive) == 1


def test_a_worker_that_does_not_answer_is_ended(
    sandbox: wasm.WasmSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wasm, "TESTS_S", 2.0)
    monkeypatch.setattr(wasm, "GRACE_S", 2.0)
    (worker,) = sandbox._alive
    os.kill(worker._process.pid, signal.SIGSTOP)
    assert judged(sandbox, RIGHT, wall_s=1, cpu_s=1).status == "pass"
    assert worker._process.poll() is not None
    assert worker not in sandbox._alive


def test_workers_that_do_not_start_make_no_verdict_and_no_end(
    sandbox: wasm.WasmSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sandbox.close()
    component = sandbox._component
    monkeypatch.setattr(sandbox, "_component", tmp_path / "gone.cwasm")
    verdict = judged(sandbox, RIGHT)
    assert (verdict.status, verdict.reason) == ("invalid", "sandbox-error"), verdict
    monkeypatch.setattr(sandbox, "_component", component)
    assert judged(sandbox, RIGHT).status == "pass"
