"""WebAssembly: no program leaves the score, learns from another, or takes the host's memory."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.data.plain import encode
from assay.sandbox import open_sandbox
from assay.sandbox.kinds import wasm
from assay.sandbox.wasm.exchange import GuestReport
from assay.types import Cases, Integrity, Job, Limits, Program, Tests, Verdict

pytest.importorskip("wasmtime", reason="needs wasmtime: pip install 'assay-eval[wasm]'")
pytestmark = [pytest.mark.slow, pytest.mark.wasm]

INPUTS = {"base": [[1], [2]], "plus": [[3]]}
MATCHER = "def matcher(): return lambda arguments, expected, got: got == expected"
CASES = Cases(
    {group: list(map(encode, calls)) for group, calls in INPUTS.items()},
    {group: [x + 1 for (x,) in calls] for group, calls in INPUTS.items()},
    "digest",
)
TESTS = {
    "code": Tests("f", "assert f(1) == 2\nassert f(2) == 3", integrity="separated"),
    "cases": Tests("f", MATCHER, "", "separated", CASES),
    "shared": Tests("f", "assert f(1) == 2\nassert f(2) == 3"),
}
RIGHT = "def f(x): return x + 1"
# The program's own instance is its own: it may answer whatever it wants to.
SAYS = "import app\napp._to_json = lambda *_: {}\ndef f(x): return 0\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[wasm.WasmSandbox]:
    opened = open_sandbox("wasm", 1)
    assert isinstance(opened, wasm.WasmSandbox)
    yield opened
    opened.close()


def judged(
    sandbox: wasm.WasmSandbox, code: str, tests: Tests = TESTS["code"], **limits: float
) -> Verdict:
    asked: Any = {"cpu_s": 5.0, "wall_s": 60.0, **limits}
    (verdict,) = sandbox.judge([Job("t", 0, Program(code, ""), tests, Limits(**asked))])
    return verdict


@pytest.mark.parametrize("kind", TESTS)
@pytest.mark.parametrize(
    "code",
    [
        "def f(x):\n    import bz2",
        "def f(x): return __import__('ctypes')",
        "import importlib\ndef f(x): return importlib.import_module('bz2')",
        "if x := 0 or True:\n    import bz2",
        "import os\ndef f(x): return os.fork()",
        "def f(x): return open('x')",
        "def f(x): return len(range(3 * 10**9))",
        "import threading\ndef f(x): threading.Thread(target=print).start()",
        "import asyncio\nasync def g(): pass\ndef f(x): asyncio.run(g())",
        "import socket\ndef f(x): return socket.socket()",
        "import numpy\ndef f(x): return 0",
        "def f(x):\n    try: open('x')\n    except OSError as error: raise error",
    ],
)
def test_no_lack_at_run_time_leaves_the_score(
    sandbox: wasm.WasmSandbox, code: str, kind: str
) -> None:
    """An ``invalid`` verdict for a lack that the program chooses would take it out of the score."""
    verdict = judged(sandbox, code, TESTS[kind])
    assert verdict.status == "fail", verdict
    assert "the guest lacks" in verdict.detail or "numpy" in verdict.detail


@pytest.mark.parametrize("kind", ["code", "cases"])
@pytest.mark.parametrize(
    "answer",
    [
        # They claim a lack, or could break the tests' instance.
        """'[' + '{"raised": "x", "reason": "unsupported", "detail": ""}' + ']'""",
        """'"text"'""",
        "'[' * 100_000 + ']' * 100_000",
        """'[[' + '{"tuple": [' * 20_000 + ']}' * 20_000 + ']]'""",
        # They are not a list of results, or a huge one.
        "''",
        "'[]'",
        "'{}'",
        "'[null]'",
        "'[[1], [1], [1], [1], [1], [1]]'",
        "7",
        "chr(0xd800)",
        "'[' + ' ' * (100 << 20) + ']'",
        "chr(0x1f600) + ' ' * (60 << 20)",
        "'[[[' + '[],' * (4 << 20) + '[]]]]'",
    ],
)
def test_no_answer_leaves_the_score(sandbox: wasm.WasmSandbox, answer: str, kind: str) -> None:
    verdict = judged(sandbox, SAYS.format(answer), TESTS[kind])
    assert (verdict.status, verdict.reason) in {("fail", "exit"), ("fail", "exception")}, verdict
    assert len(verdict.detail) < 1000


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("invalid", "sandbox-error"),
        ("fail", "unsupported"),
        ("fail", "sandbox-error"),
        ("unsupported", ""),
        ("pass", "sandbox-error"),
    ],
)
def test_a_shared_program_cannot_say_that_it_is_not_to_be_counted(
    sandbox: wasm.WasmSandbox, status: str, reason: str
) -> None:
    """It can say ``pass``, which is what shared means, but no other status or reason."""
    told = f'{{"status": "{status}", "reason": "{reason}", "detail": "", "failing_test": ""}}'
    verdict = judged(sandbox, SAYS.format(repr(told)), TESTS["shared"])
    assert verdict.status == "fail", verdict
    assert verdict.reason in {"exit", "exception"}


def test_a_shared_program_cannot_fill_the_harness_with_words(sandbox: wasm.WasmSandbox) -> None:
    """Without a limit, a detail of 60 MB gets into the results folder."""
    told = '\'{"status": "fail", "reason": "exception", "detail": "\''
    told += ' + \'A\' * (60 << 20) + \'", "failing_test": ""}\''
    verdict = judged(sandbox, SAYS.format(told), TESTS["shared"])
    assert verdict.status == "fail"
    assert len(verdict.detail) <= 500


@pytest.mark.parametrize(
    "ends",
    ["os._exit(0)", "def f(x): os._exit(0)", "while True: pass", "os.abort()"],
)
def test_no_memory_of_an_ended_program_stays_in_its_worker(
    sandbox: wasm.WasmSandbox, ends: str
) -> None:
    """Each of them uses 200 MB, which must be free for the next; the limit of one is 512."""
    code = f"import os\nx = bytearray(b'x') * (200 << 20)\n{ends}"
    for _ in range(4):
        assert judged(sandbox, code, cpu_s=0.5).status == "fail"
    (worker,) = sandbox._alive
    status = Path(f"/proc/{worker._process.pid}/status").read_text()
    resident = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert resident
    assert int(resident[1]) < 300 << 10


def test_a_worker_has_a_limit_of_its_own(sandbox: wasm.WasmSandbox) -> None:
    """The limit includes copies of answers, and of all that the worker receives."""
    says = "chr(0x1f600) + ' ' * (120 << 20)"
    assert judged(sandbox, SAYS.format(says), TESTS["shared"]).status == "fail"
    assert judged(sandbox, RIGHT).status == "pass"
    (worker,) = sandbox._alive
    limits = Path(f"/proc/{worker._process.pid}/limits").read_text()
    found = re.search(r"Max data size +(\d+) ", limits)
    assert found
    assert int(found[1]) == (512 + 1024 + 1024) << 20


def breaks_workers(monkeypatch: pytest.MonkeyPatch, *, controls_too: bool) -> None:
    """Let the worker's process be killed whenever it runs certain programs."""
    judge = wasm._Worker.judge

    def kill_and_judge(worker: wasm._Worker, job: Job, seed: str) -> GuestReport:
        if controls_too or job.task_id != wasm.CONTROL_TASK:
            os.kill(worker._process.pid, signal.SIGKILL)
        return judge(worker, job, seed)

    monkeypatch.setattr(wasm._Worker, "judge", kill_and_judge)


def test_who_breaks_workers_in_which_a_control_program_passes_has_failed(
    sandbox: wasm.WasmSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three lost workers must not make it ``invalid``, which would take it out of the score."""
    breaks_workers(monkeypatch, controls_too=False)
    verdict = judged(sandbox, RIGHT)
    assert (verdict.status, verdict.reason) == ("fail", "broke-worker"), verdict
    assert "worker was lost" in verdict.detail


def test_who_is_judged_where_control_programs_fail_too_is_not_blamed(
    sandbox: wasm.WasmSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks_workers(monkeypatch, controls_too=True)
    verdict = judged(sandbox, RIGHT)
    assert (verdict.status, verdict.reason) == ("invalid", "sandbox-error"), verdict


@pytest.mark.parametrize(("busy", "reason"), [(False, "timeout"), (True, "sandbox-error")])
def test_a_busy_machine_is_proven_by_a_control_program(
    sandbox: wasm.WasmSandbox, monkeypatch: pytest.MonkeyPatch, busy: bool, reason: str
) -> None:
    """A program that waits often enough must not be believed without proof."""
    judge = wasm._Worker.judge
    starved = GuestReport(ended="wall", starved=True, cpu_s=0.0, wall_s=9.0)

    def judge_starved(worker: wasm._Worker, job: Job, seed: str) -> GuestReport:
        return starved if busy or job.task_id != wasm.CONTROL_TASK else judge(worker, job, seed)

    monkeypatch.setattr(wasm._Worker, "judge", judge_starved)
    verdict = judged(sandbox, RIGHT)
    assert verdict.status == ("invalid" if busy else "fail"), verdict
    assert verdict.reason == reason


@pytest.mark.parametrize("integrity", ["separated", "shared"])
def test_imports_of_the_tests_are_the_task_s_own_lack(
    sandbox: wasm.WasmSandbox, integrity: Integrity
) -> None:
    inside = "def check(f):\n    import bz2\n    assert f(1) == 2\ncheck(f)"
    for tests in (
        Tests("f", f"import bz2\n{TESTS['code'].code}", "", integrity),
        Tests("f", inside, "", integrity),
        Tests("f", TESTS["code"].code, "import bz2\n", integrity),
    ):
        verdict = judged(sandbox, RIGHT, tests)
        assert (verdict.status, verdict.reason) == ("invalid", "unsupported"), verdict
        assert "module bz2, imported by the" in verdict.detail


def test_calls_reach_a_program_as_data(sandbox: wasm.WasmSandbox) -> None:
    """Positions in code would tell ``assert f(x)`` from ``assert not f(x)``."""
    looks = (
        "import sys\n"
        "def f(x):\n"
        "    frame = sys._getframe()\n"
        "    while frame and not isinstance(frame.f_locals.get('calls'), str):\n"
        "        frame = frame.f_back\n"
        "    return x + (frame.f_locals['calls'][0] in 'mj')\n"
    )
    assert judged(sandbox, looks).status == "pass"


def test_what_tests_draw_cannot_be_foreseen(sandbox: wasm.WasmSandbox) -> None:
    """After ``random.seed(0)``, a program could draw the same numbers."""
    draws = "import random\nn = random.randrange(10**9)\nassert f(n) == n + 1"
    tests = Tests("f", draws, integrity="separated")
    knows = "import random\nrandom.seed(0)\nknown = random.randrange(10**9)\n"
    knows += "def f(x): return x + (x == known)"
    assert judged(sandbox, knows, tests).reason == "wrong-answer"
    assert judged(sandbox, RIGHT, tests).status == "pass"
    job = Job("t", 0, Program("def f(x): raise KeyError(x)", ""), tests, seed="s")
    first, second = sandbox.judge([job, job])
    assert first.detail == second.detail, "the seed does not decide what is drawn"


def test_a_program_finds_no_mark_of_the_one_before(sandbox: wasm.WasmSandbox) -> None:
    """Each program has an instance, and so a memory, of its own."""
    mark = "left-by-the-first"
    leaves = (
        f"import os, sys, gc\nmark = {mark!r}\nos.environ['MARK'] = mark\n"
        "sys.mark = mark\nprint(mark, flush=True)\n"
        "try: open('/tmp/' + mark, 'w')\nexcept OSError: pass\n"
        "def f(x): return x + 1"
    )
    looks = (
        "import gc, os, sys\n"
        f"mark = '-'.join({mark.split('-')!r})\n"
        "def found():\n"
        "    for one in gc.get_objects():\n"
        "        inner = one.values() if type(one) is dict else one\n"
        "        if type(one) in (list, tuple, dict) and one is not globals():\n"
        "            yield from (s for s in inner if type(s) is str and s == mark)\n"
        "    yield from (s for s in os.environ.values() if s == mark)\n"
        "def f(x): return x + 1 + len(list(found())) + hasattr(sys, 'mark')"
    )
    assert judged(sandbox, leaves).status == "pass"
    assert judged(sandbox, looks).status == "pass"


def test_output_goes_nowhere(sandbox: wasm.WasmSandbox) -> None:
    """It reaches neither the harness nor the next program, however much it is."""
    floods = "import sys\nfor _ in range(200): sys.stdout.write('A' * (1 << 20))\n"
    verdict = judged(sandbox, f"{floods}{RIGHT}")
    assert verdict.status == "pass", verdict
