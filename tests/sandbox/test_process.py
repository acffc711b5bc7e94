"""The process sandbox: verdicts, limits, isolation. Untrusted code runs only inside it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.sandbox import Sandbox, open_sandbox
from assay.sandbox.environments.interpreters import choose
from assay.sandbox.host.tiers import TIERS
from assay.sandbox.kinds.process import ProcessSandbox
from assay.types import Job, Limits, Program, Tests, Verdict
from tests.security.in_tiers import STRONGEST

TIERS_HERE = [STRONGEST, pytest.param("landlock", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=TIERS_HERE)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    opened = open_sandbox("process", 2, request.param)
    yield opened
    opened.close()


def job(code: str, tests: str = "", preamble: str = "", sample: int = 0, **limits: Any) -> Job:
    return Job("t", sample, Program(code, "x"), Tests("f", tests, preamble), Limits(**limits))


def judged(sandbox: Sandbox, code: str, tests: str = "", **limits: Any) -> Verdict:
    (verdict,) = sandbox.judge([job(code, tests, **limits)])
    return verdict


GOOD = "def f(x):\n    return 2 * x\n"


def test_right_code_passes_and_its_cost_is_told(sandbox: Sandbox) -> None:
    verdict = judged(sandbox, GOOD, "assert f(2) == 4")
    assert (verdict.status, verdict.reason, verdict.integrity) == ("pass", "passed", "shared")
    assert 0 < verdict.wall_s < 10
    assert 0 < verdict.peak_mb < 100


def test_a_wrong_answer_names_the_failing_test(sandbox: Sandbox) -> None:
    verdict = judged(sandbox, GOOD, "assert f(1) == 2\nassert f(2) == 5\nassert f(3) == 6")
    assert (verdict.status, verdict.reason) == ("fail", "wrong-answer")
    assert verdict.failing_test == "assert f(2) == 5"


@pytest.mark.parametrize(
    ("code", "tests", "reason", "detail"),
    [
        ("def f(:", "", "syntax", "SyntaxError"),
        ("x = '\0'", "", "syntax", "null bytes"),
        ("(" * 500, "", "syntax", ""),
        ("def f(x):\n    return x.y", "f(1)", "exception", "AttributeError.*line 2 of the program"),
        ("assert False", "", "exception", "AssertionError"),
        ("def f(): f()", "f()", "exception", "RecursionError"),
        ("raise KeyboardInterrupt", "", "exception", "KeyboardInterrupt"),
        ("import sys; sys.exit(0)", "", "exit", "SystemExit"),
        ("import os; os._exit(0)", "assert False", "exit", "exit code 0"),
        ("import os; os.abort()", "", "signal", "SIGABRT"),
        ("import ctypes; ctypes.string_at(0)", "", "signal", "SIGSEGV"),
        ("x = [0] * 10**9", "", "memory", "MemoryError"),
        ("input()", "", "exception", "EOFError"),
    ],
)
def test_each_failure_has_its_reason(
    sandbox: Sandbox, code: str, tests: str, reason: str, detail: str
) -> None:
    verdict = judged(sandbox, code, tests)
    assert (verdict.status, verdict.reason) == ("fail", reason)
    assert re.search(detail, verdict.detail)


@pytest.mark.parametrize(
    ("code", "limits", "detail"),
    [
        ("while True: pass", {"cpu_s": 1.0}, "1 s of CPU time"),
        (
            "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass",
            {"cpu_s": 1.0},
            "1 s of CPU time",
        ),
        ("import time; time.sleep(60)", {"wall_s": 1.0}, "still running after 1 s"),
        (
            "import signal, time\nfor s in range(1, 32):\n"
            "    try: signal.signal(s, signal.SIG_IGN)\n    except OSError: pass\ntime.sleep(60)",
            {"wall_s": 1.0},
            "still running after 1 s",
        ),
        ("import re; re.match('(a+)+b', 'a' * 40)", {"cpu_s": 1.0}, "1 s of CPU time"),
    ],
)
def test_time_limits_hold(sandbox: Sandbox, code: str, limits: dict[str, Any], detail: str) -> None:
    verdict = judged(sandbox, code, **limits)
    assert (verdict.status, verdict.reason) == ("fail", "timeout")
    assert detail in verdict.detail


def test_exit_zero_is_not_a_pass(sandbox: Sandbox) -> None:
    for ending in ("import os; os._exit(0)", "raise SystemExit(0)", "import sys; sys.exit()"):
        assert judged(sandbox, ending, "assert False").status == "fail"


def test_what_a_program_prints_is_no_verdict(sandbox: Sandbox) -> None:
    forged = r"\0pass\0passed\0\0"
    code = (
        "import os\nfor fd in range(1, 64):\n"
        f"    try: os.write(fd, b'''{forged}''')\n    except OSError: pass\nos._exit(0)"
    )
    assert judged(sandbox, code, "assert False").status == "fail"


def test_the_supervisors_descriptors_cannot_be_opened(sandbox: Sandbox) -> None:
    """Its parent has no number in its pid namespace, whose first process is hidden."""
    code = "import os\nprint(os.listdir(f'/proc/{os.getppid() or 1}/fd'))"
    detail = judged(sandbox, code).detail
    assert "PermissionError" in detail or "FileNotFoundError" in detail


def test_a_program_of_a_megabyte_is_run(sandbox: Sandbox) -> None:
    """Larger than what fits between keeper and program at once."""
    code = f"TEXT = {'x' * (1 << 20)!r}\ndef f(): return len(TEXT)"
    assert judged(sandbox, code, f"assert f() == {1 << 20}").status == "pass"


def test_no_network(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        code = f"import socket; socket.create_connection({address!r}, 2)"
        verdict = judged(sandbox, code)
    assert (verdict.status, verdict.reason) == ("fail", "forbidden")


def test_nothing_is_left_for_the_next_sample(sandbox: Sandbox) -> None:
    leave = "import os\nopen('left', 'w').write('x')\nos.makedirs('a/' * 100)"
    assert judged(sandbox, leave).status == "pass"
    assert judged(sandbox, "import os", "assert os.listdir('.') == []").status == "pass"


def test_the_host_is_neither_seen_nor_changed(sandbox: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o644)
    for path in (secret, Path("/etc/passwd"), Path("/proc/1/environ"), Path(__file__)):
        verdict = judged(sandbox, f"open({str(path)!r}).read()")
        assert re.search("FileNotFound|Permission", verdict.detail), path
    for folder in ("/home", str(tmp_path)):
        verdict = judged(sandbox, f"import os\nos.listdir({folder!r})")
        assert re.search("FileNotFound|Permission", verdict.detail), folder
    for folder in ("", "/usr", str(Path(os.path.realpath(choose().path)).parents[1])):
        verdict = judged(sandbox, f"open({folder + '/assay-was-here'!r}, 'w')")
        assert verdict.reason == "forbidden", folder


def test_no_environment_of_the_host(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert judged(sandbox, "import os\nassert 'secret' not in str(os.environ)").status == "pass"


def test_no_privileges(sandbox: Sandbox) -> None:
    code = "import os\nos.setuid(0) if os.getuid() else os.chown('.', 1, 1)"
    assert judged(sandbox, code).reason == "forbidden"
    code = """
import ctypes
libc = ctypes.CDLL(None)
held = (ctypes.c_uint32 * 6)()
assert libc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), held) == 0
assert not any(held), list(held)
for capability in range(38):
    assert libc.prctl(23, capability, 0, 0, 0) == 0, capability  # in the bounding set
    assert libc.prctl(47, 1, capability, 0, 0) == 0, capability  # ambient
assert libc.prctl(39, 0, 0, 0, 0) == 1  # no new privileges
"""
    assert judged(sandbox, code).status == "pass"


def test_the_process_limit_holds(sandbox: Sandbox) -> None:
    code = (
        "import os, time\nfor i in range(100):\n    if not os.fork(): time.sleep(20); os._exit(0)"
    )
    verdict = judged(sandbox, f"{code}\ntime.sleep(20)")
    assert verdict.reason == "processes"
    assert verdict.wall_s < 10


def test_files_are_limited(sandbox: Sandbox) -> None:
    assert judged(sandbox, "open('x', 'wb').write(bytes(65 << 20))").reason == "files"


def test_files_are_limited_together(sandbox: Sandbox) -> None:
    if sandbox.capabilities().tier == "landlock":
        assert any("not their total size" in gap for gap in TIERS["landlock"].gaps)
        return
    code = "for i in range(10):\n    open(f'{i}', 'wb').write(bytes(9 << 20))"
    assert judged(sandbox, code).reason == "files"


def test_a_flood_of_output_costs_nothing(sandbox: Sandbox) -> None:
    verdict = judged(sandbox, "for i in range(300): print('x' * 10**6)")
    assert verdict.status == "pass"


def test_orphans_die_with_their_sample(sandbox: Sandbox) -> None:
    """A daemon that leaves session and parent behind; looked for by name on the whole machine."""
    mark = f"assay-orphan-{os.getpid()}"
    code = f"""
import ctypes, os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(15, b"{mark[-15:]}", 0, 0, 0)
        time.sleep(60)
    os._exit(0)
time.sleep(0.5)
"""
    assert judged(sandbox, code).status == "pass"
    names = [p.read_text().strip() for p in _proc_names()]
    assert mark[-15:] not in names


def _proc_names() -> Iterator[Path]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and (folder / "comm").exists():
            yield folder / "comm"


def test_killing_everything_in_sight_kills_only_the_sample(sandbox: Sandbox) -> None:
    jobs = [job("import os\nos.kill(-1, 9)\nos.kill(os.getpid(), 9)"), job(GOOD, "f(1)", sample=1)]
    verdicts = {v.sample: v for v in sandbox.judge(jobs)}
    assert verdicts[0].status == "fail"
    assert verdicts[1].status == "pass"


def test_threads_left_behind_do_not_delay_the_verdict(sandbox: Sandbox) -> None:
    code = "import threading, time\nthreading.Thread(target=time.sleep, args=(20,)).start()"
    verdict = judged(sandbox, code)
    assert verdict.status == "pass"
    assert verdict.wall_s < 10


def test_set_order_is_the_same_every_time(sandbox: Sandbox) -> None:
    code = "print(list({'a', 'b', 'c', 'd', 'e'})); import os; os.abort()"
    details = {judged(sandbox, code.replace("print", "raise Exception")).detail for _ in range(5)}
    assert len(details) == 1


def test_futures_and_dataclasses_work_as_in_a_module(sandbox: Sandbox) -> None:
    code = """
from __future__ import annotations
from dataclasses import dataclass
import pickle
@dataclass
class Point:
    x: int
"""
    tests = "assert pickle.loads(pickle.dumps(Point(3))) == Point(3)"
    assert judged(sandbox, code, tests).status == "pass"


def test_what_a_benchmark_asks_for_is_loaded_already(sandbox: Sandbox) -> None:
    tests = "import sys\nassert ('decimal' in sys.modules) == wanted"
    for wanted, imports in ((True, ("decimal",)), (False, ())):
        asked = Job("t", 0, Program(f"wanted = {wanted}", "x"), Tests("f", tests), imports=imports)
        (verdict,) = sandbox.judge([asked])
        assert verdict.status == "pass"


def test_a_module_that_is_not_there_is_our_failure(sandbox: Sandbox) -> None:
    asked = Job("t", 0, Program("x = 1", "x"), Tests("f", ""), imports=("no_such_module",))
    (verdict,) = sandbox.judge([asked])
    assert (verdict.status, verdict.reason) == ("invalid", "sandbox-error")
    assert "no_such_module" in verdict.detail


@pytest.mark.slow
def test_memory_limits_can_differ_from_job_to_job(sandbox: Sandbox) -> None:
    code = "x = bytearray(300 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1"
    assert judged(sandbox, code, memory_mb=128).reason == "memory"
    assert judged(sandbox, code, memory_mb=1024).status == "pass"


def test_jobs_are_taken_only_when_a_worker_is_free() -> None:
    taken = 0

    def endless() -> Iterator[Job]:
        nonlocal taken
        while True:
            taken += 1
            yield job(GOOD, sample=taken)

    stream = open_sandbox("process", 2).judge(endless())
    for _ in range(6):
        next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert taken < 30


def test_closing_the_stream_kills_what_runs() -> None:
    sandbox = ProcessSandbox(2)
    stream = sandbox.judge([job("import time; time.sleep(25)"), job(GOOD, sample=1)])
    assert next(stream).sample == 1
    servers: list[Any] = [worker._programs for worker in sandbox._alive]
    assert servers
    started = time.monotonic()
    stream.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < 5
    assert {server._process.poll() for server in servers} == {0}


def test_an_error_of_the_source_comes_after_the_work_taken(sandbox: Sandbox) -> None:
    def jobs() -> Iterator[Job]:
        yield job(GOOD, "f(1)")
        raise RuntimeError("the model is gone")

    before = set(threading.enumerate())
    with pytest.raises(RuntimeError, match="the model is gone"):
        list(sandbox.judge(jobs()))
    new = set(threading.enumerate()) - before
    for thread in new:
        thread.join(timeout=10)
    assert not any(thread.is_alive() for thread in new)


def test_a_dead_sandbox_is_invalid_not_fail(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.sandbox.host.local.OPTIONS", ("-c", "pass"))
    sandbox.close()
    verdict = judged(sandbox, GOOD)
    assert (verdict.status, verdict.reason) == ("invalid", "sandbox-error")


def test_a_machine_without_namespaces_is_refused_not_served_naked(tmp_path: Path) -> None:
    """In a user namespace that may hold no further ones."""
    script = tmp_path / "open.py"
    script.write_text(
        "from assay.errors import SandboxError\nfrom assay.sandbox import open_sandbox\n"
        "try:\n    open_sandbox('process', 1, 'user')\n"
        "except SandboxError as e:\n    print('refused:', e)\n"
    )
    limit = "echo 0 > /proc/sys/user/max_mnt_namespaces"
    command = f'{limit} && exec "$0" "$1"'
    done = subprocess.run(
        ["unshare", "-r", "sh", "-c", command, sys.executable, str(script)],
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("refused: process sandbox: does not work here"), done


@pytest.mark.slow
def test_a_program_that_sleeps_gives_its_place_to_another(sandbox: Sandbox) -> None:
    sleeper = "import time\ndef f():\n    time.sleep(8)\n"
    jobs = [job(sleeper, "f()", sample=n) for n in range(2)]
    jobs += [job(GOOD, "assert f(2) == 4", sample=n) for n in range(2, 12)]
    order = [(v.sample, v.status) for v in sandbox.judge(jobs)]
    assert {status for _, status in order} == {"pass"}
    # Both places were taken by sleepers, and still all others were done before them.
    assert {sample for sample, _ in order[-2:]} == {0, 1}
    assert len(order) == 12


@pytest.mark.slow
def test_a_program_that_works_keeps_its_place() -> None:
    busy = "import time\ndef f():\n    while time.process_time() < 4:\n        pass\n"
    opened = open_sandbox("process", 1)
    order = [v.sample for v in opened.judge([job(busy, "f()"), job(GOOD, "f(1)", sample=1)])]
    opened.close()
    assert order == [0, 1]


def test_a_program_that_measures_time_is_judged_while_no_other_runs(sandbox: Sandbox) -> None:
    """Each writes down when it ran, by a clock that all programs share."""
    code = "import time\nstart = time.monotonic()\ntime.sleep(0.3)\nend = time.monotonic()\n"
    show = f"{code}print(start, end)\n"
    jobs = [replace(job(show, "assert False", sample=n), alone=n == 2) for n in range(6)]
    times = {v.sample: tuple(map(float, v.output.split())) for v in sandbox.judge(jobs)}
    start, end = times.pop(2)
    assert all(other[1] <= start or other[0] >= end for other in times.values())
