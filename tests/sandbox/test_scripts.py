"""Programs that read standard input: real processes, cases apart, outputs compared here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from assay import protocol
from assay.data import text_cases
from assay.data.failures import explain_failure
from assay.sandbox import Sandbox, open_sandbox
from assay.types import Job, Limits, Program, Tests, Verdict
from tests.security.in_tiers import STRONGEST

SUMS = [("1 2\n", "3\n"), ("4 5\n", "9\n"), ("10 -3\n", "7\n")]
ADD = "a, b = map(int, input().split())\nprint(a + b)"


@pytest.fixture(
    scope="module", params=[STRONGEST, pytest.param("landlock", marks=pytest.mark.slow)]
)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    try:
        opened = open_sandbox("process", 2, request.param)
    except Exception as error:
        pytest.skip(f"tier {request.param}: {error}")
    yield opened
    opened.close()


def script_tests(
    pairs: list[tuple[str, str]],
    comparison: str = "livecodebench",
    prelude: str = "",
    *,
    run_all: bool = False,
) -> Tests:
    cases = text_cases.pack(pairs, comparison=comparison, run_all=run_all)
    return Tests("", "", prelude, "separated", texts=cases)


def judged(sandbox: Sandbox, code: str, tests: Tests, **limits: Any) -> Verdict:
    settings = {"cpu_s": 4.0, "call_cpu_s": 2.0, "wall_s": 10.0, **limits}
    (verdict,) = sandbox.judge([Job("t", 0, Program(code, "x"), tests, Limits(**settings))])
    return verdict


@pytest.mark.parametrize(
    "code",
    [
        ADD,
        "import sys\na, b = map(int, sys.stdin.read().split())\nprint(a + b)",
        "import sys\na, b = map(int, sys.stdin.readline().split())\nsys.stdout.write(f'{a + b}')",
        "import sys\na, b = map(int, next(sys.stdin).split())\nprint(a + b)",
        "import sys\n[line] = sys.stdin.readlines()\nprint(sum(map(int, line.split())))",
        "import sys\na, b = map(int, sys.stdin.buffer.readline().split())\nprint(a + b)",
        "import sys\nsys.stdin.buffer.readline()\nassert not sys.stdin.buffer.readline()\n"
        "sys.stdin.seek(0)\nprint(sum(map(int, sys.stdin.read(50).split())))",
        "import os\na, b = map(int, os.read(0, 100).split())\nos.write(1, b'%d' % (a + b))",
        "import os\nprint(sum(map(int, os.read(0, os.fstat(0).st_size).split())))",
        "print(sum(map(int, open(0).read().split())))",
        "import mmap\nprint(sum(map(int, mmap.mmap(0, 0, prot=mmap.PROT_READ)[:].split())))",
        "def main():\n    print(sum(map(int, input().split())))\n"
        "if __name__ == '__main__':\n    main()",
        "import threading\ndef main():\n    print(sum(map(int, input().split())))\n"
        "threading.stack_size(1 << 26)\nthreading.Thread(target=main).start()",
        "import atexit\nn = sum(map(int, input().split()))\natexit.register(lambda: print(n))",
        "out = open(1, 'w', closefd=False)\nout.write(str(sum(map(int, input().split()))))",
        "import sys\nprint(sum(map(int, input().split())))\nsys.exit(1)",
        "import sys\nprint(sum(map(int, input().split())))\nprint('noise', file=sys.stderr)",
        "import sys, __main__\nassert __main__.__name__ == '__main__' and sys.argv\n" + ADD,
    ],
)  # fmt: skip
def test_every_way_to_read_standard_input_works(sandbox: Sandbox, code: str) -> None:
    verdict = judged(sandbox, code, script_tests(SUMS))
    assert (verdict.status, verdict.integrity) == ("pass", "separated"), verdict
    assert verdict.groups == {"cases": (3, 3)}


@pytest.mark.parametrize(
    ("code", "reason", "detail"),
    [
        ("print(3)", "wrong-answer", "expected '9', printed '3'"),
        ("", "wrong-answer", "expected '3', printed nothing"),
        ("import os; os._exit(0)", "wrong-answer", "printed nothing"),
        ("import sys; sys.exit(0)", "wrong-answer", "printed nothing"),
        (f"{ADD}\nimport os, sys; sys.stdout.flush(); os._exit(3)", "exit", "exit code 3"),
        (f"{ADD}\nraise ValueError('late')", "exception", "ValueError: late (line 3"),
        ("print(1 / 0)", "exception", "ZeroDivisionError: division by zero (line 1"),
        ("print(int(input()))", "exception", "ValueError: invalid literal"),
        ("input(); input()", "exception", "EOFError"),
        ("def f(:", "syntax", "SyntaxError"),
        ("while True: pass", "timeout", "used 2 s of CPU time in one case"),
        ("import time; time.sleep(60)", "timeout", "still running after 10 s"),
        ("while True: print('x' * 1000)", "output", "printed more than 1 MB"),
        ("import os\nwhile True: os.write(1, b'x' * 65536)", "output", "printed more than 1 MB"),
        ("x = [0] * 10**9", "memory", "MemoryError"),
        ("import os; os.kill(os.getpid(), 11)", "signal", "ended by SIGSEGV"),
        ("import socket; socket.socket().connect(('127.0.0.1', 9))", "forbidden", ""),
    ],
)
def test_failures_have_reasons(sandbox: Sandbox, code: str, reason: str, detail: str) -> None:
    verdict = judged(sandbox, code, script_tests(SUMS))
    assert (verdict.status, verdict.reason) == ("fail", reason), verdict
    assert detail in explain_failure(verdict)
    assert verdict.failing_test.startswith("case ")
    assert verdict.input == ("4 5" if code.startswith("print(3") else "1 2")
    assert (verdict.actual is not None) == (reason == "wrong-answer")


def test_a_flood_of_errors_is_not_a_failure(sandbox: Sandbox) -> None:
    flood = f"import sys\nfor _ in range(3000): print('x' * 1000, file=sys.stderr)\n{ADD}"
    assert judged(sandbox, flood, script_tests(SUMS)).status == "pass"


def test_the_first_failed_case_ends_the_run(sandbox: Sandbox) -> None:
    wrong_once = "n = int(input())\nprint('no' if n == 3 else n)"
    pairs = [(str(n), str(n)) for n in range(8)]
    stopped = judged(sandbox, wrong_once, script_tests(pairs))
    assert stopped.groups == {"cases": (3, 8)}
    assert stopped.failing_test == "case 4: '3'"
    counted = judged(sandbox, wrong_once, script_tests(pairs, run_all=True))
    assert counted.groups == {"cases": (7, 8)}
    assert (counted.status, counted.failing_test) == ("fail", stopped.failing_test)


def test_no_case_is_run_after_a_timeout(sandbox: Sandbox) -> None:
    slow = "n = int(input())\nwhile n == 1: pass\nprint(n)"
    pairs = [(str(n), str(n)) for n in range(4)]
    verdict = judged(sandbox, slow, script_tests(pairs, run_all=True), call_cpu_s=0.5)
    assert (verdict.reason, verdict.groups) == ("timeout", {"cases": (1, 4)})


def test_limits_hold_for_each_case_and_for_all_together(sandbox: Sandbox) -> None:
    busy = (
        "import time\nn = input()\nend = time.process_time() + 0.3\n"
        "while time.process_time() < end: pass\nprint(n)"
    )
    tests = script_tests([(str(n), str(n)) for n in range(4)])
    assert judged(sandbox, busy, tests, call_cpu_s=0.7, cpu_s=10).status == "pass"
    assert judged(sandbox, busy, tests, call_cpu_s=0.7, cpu_s=0.8).reason == "timeout"


@pytest.mark.slow
def test_sleeping_in_many_cases_is_limited(sandbox: Sandbox) -> None:
    sleepy = "import time\ntime.sleep(0.9)\nprint(input())"
    tests = script_tests([(str(n), str(n)) for n in range(30)])
    verdict = judged(sandbox, sleepy, tests, wall_s=2.0)
    # On a busy machine no CPU is idle, and waiting cannot be told from being starved.
    assert verdict.reason == "timeout" or verdict.wall_s > 25


def test_nothing_of_a_case_is_there_in_the_next(sandbox: Sandbox) -> None:
    leaves = (
        "import os, subprocess, time\n"
        "found = os.listdir('/tmp') + os.listdir('.')\n"
        "open('/tmp/left', 'w').write('x')\n"
        "if os.fork() == 0:\n    os.setsid()\n    time.sleep(30)\n"
        "print(*found, input())"
    )
    pairs = [(str(n), str(n)) for n in range(3)]
    if "landlock" in sandbox.capabilities().tier:
        leaves = leaves.replace("os.listdir('/tmp') + ", "").replace("/tmp/left", "left")
    assert judged(sandbox, leaves, script_tests(pairs)).status == "pass"


def test_a_program_cannot_change_its_input_for_others(sandbox: Sandbox) -> None:
    writes = "import os\ntry:\n    os.pwrite(0, b'9 9', 0)\nexcept OSError:\n    pass\n" + ADD
    assert judged(sandbox, writes, script_tests([SUMS[0]] * 3)).status == "pass"


def test_the_prelude_runs_before_every_program(sandbox: Sandbox) -> None:
    prelude = "from sys import *\nfrom math import *\nsetrecursionlimit(50000)\n"
    uses = "a, b = map(int, stdin.readline().split())\nstdout.write(str(a + b + int(sin(0))))"
    assert judged(sandbox, uses, script_tests(SUMS, prelude=prelude)).status == "pass"
    assert judged(sandbox, uses, script_tests(SUMS)).reason == "exception"


def test_large_inputs_and_outputs_arrive_whole(sandbox: Sandbox) -> None:
    numbers = " ".join(map(str, range(400_000)))
    tests = script_tests([(numbers, numbers.replace(" ", "\n"))] * 2)
    verdict = judged(
        sandbox, "print(*input().split(), sep='\\n')", tests, output_bytes=8 << 20, cpu_s=20.0
    )
    assert verdict.status == "pass", verdict


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        ([], "there are no cases"),
        ([("1", ""), ("2", " \n")], "no case expects any output"),
    ],
)
def test_cases_that_every_program_passes_are_refused(
    sandbox: Sandbox, pairs: list[tuple[str, str]], why: str
) -> None:
    verdict = judged(sandbox, "", script_tests(pairs))
    assert (verdict.status, verdict.reason) == ("invalid", "sandbox-error")
    assert why in verdict.detail


def test_white_space_that_makes_the_difference_is_shown(sandbox: Sandbox) -> None:
    verdict = judged(sandbox, "print(input())", script_tests([("abc\r\n", "abc\r\n")], "exact"))
    assert (verdict.expected, verdict.actual) == ("abc\r\n", "abc\n")
    assert explain_failure(verdict) == r"expected 'abc\r\n', printed 'abc\n'"


def test_a_failed_case_has_its_input_and_both_outputs(sandbox: Sandbox) -> None:
    """Long texts keep their beginning and end, and white space around the others is left out."""
    code = "n = int(input())\nprint('a, got b' if n == 1 else 'x' * n)"
    quoted = judged(sandbox, code, script_tests([("1\n\n", "expected 1, got 2\n")]))
    assert (quoted.input, quoted.detail) == ("1", "")
    assert (quoted.expected, quoted.actual) == ("expected 1, got 2", "a, got b")
    long = judged(sandbox, code, script_tests([("500\n", "y" * 300)]))
    assert (long.expected, long.actual) == (f"{'y' * 60} … {'y' * 60}", f"{'x' * 60} … {'x' * 60}")
    assert long.call is None


def test_damaged_cases_are_an_error_of_one_line() -> None:
    tests = Tests("", "", integrity="separated", texts=text_cases.from_parts((b"no zlib",)))
    with pytest.raises(ValueError, match="not compressed by zlib"):
        text_cases.unpack(tests.texts)  # type: ignore[arg-type]


def test_the_digest_of_tests_covers_cases_and_how_they_are_compared() -> None:
    kinds = [
        script_tests(SUMS),
        script_tests(SUMS[:2]),
        script_tests(SUMS, "exact"),
        script_tests(SUMS, run_all=True),
        script_tests(SUMS, prelude="import math"),
    ]
    assert len({protocol.tests_digest(tests) for tests in kinds}) == len(kinds)
