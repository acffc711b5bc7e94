"""WebAssembly: the battery, what it cannot run, and that it is built the same every time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.cli._output import INCOMPLETE
from assay.data import codec, text_cases
from assay.datasets import file_sha256, write_sealed
from assay.errors import SandboxError
from assay.sandbox import Sandbox, open_sandbox
from assay.sandbox.selftest.battery import run_battery
from assay.sandbox.wasm import component
from assay.types import Benchmark, Integrity, Job, Limits, Program, Tests, Verdict
from tests.conftest import Cli, references, write_completions

pytest.importorskip("wasmtime", reason="needs wasmtime: pip install 'assay-eval[wasm]'")
pytestmark = [pytest.mark.slow, pytest.mark.wasm]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    opened = open_sandbox("wasm", 2)
    yield opened
    opened.close()


def judged(
    sandbox: Sandbox,
    code: str,
    tests: str = "",
    integrity: Integrity = "separated",
    cpu_s: float = 10.0,
    wall_s: float = 30.0,
) -> Verdict:
    limits = Limits(cpu_s=cpu_s, wall_s=wall_s)
    tests = tests or "assert f(1) == 2"
    (verdict,) = sandbox.judge(
        [Job("t", 0, Program(code, ""), Tests("f", tests, integrity=integrity), limits)]
    )
    return verdict


def test_every_promise_is_kept(sandbox: Sandbox) -> None:
    observations = list(run_battery(sandbox))
    assert [o for o in observations if o.promised and not o.contained] == []


def test_references_pass(sandbox: Sandbox, humaneval: Benchmark) -> None:
    jobs = [Job(p.task_id, 0, Program(p.reference, ""), p.tests) for p in humaneval.problems]
    assert {v.task_id: v.reason for v in sandbox.judge(jobs) if v.status != "pass"} == {}


def test_a_verdict_has_what_the_tests_called_and_got(sandbox: Sandbox) -> None:
    """Only tests in another instance know it: in its own, a program could forge it."""
    apart = judged(sandbox, "def f(x): return 'a, got b'", integrity="separated")
    assert (apart.call, apart.actual, apart.detail) == ("f(1)", "'a, got b'", "AssertionError")
    shared = judged(sandbox, "def f(x): return 3", integrity="shared")
    assert (shared.call, shared.actual) == (None, None)


@pytest.mark.parametrize("integrity", ["separated", "shared"])
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def f(x): return x + 1", "passed"),
        ("def f(x): return x", "wrong-answer"),
        ("def f(x): raise KeyError(x)", "exception"),
        ("def f(x): return f(x)", "exception"),
        ("def f(x:", "syntax"),
        ("import sys\nsys.exit(0)", "exit"),
        ("import os\nos._exit(0)", "exit"),
        ("import no_such_module_of_anybody", "exception"),
        ("def f(x): return bytearray(1 << 30)", "memory"),
        ("def f(x):\n    while True: pass", "timeout"),
    ],
)
def test_each_failure_has_its_reason(
    sandbox: Sandbox, code: str, reason: str, integrity: Integrity
) -> None:
    verdict = judged(sandbox, code, integrity=integrity, cpu_s=1)
    assert verdict.reason == reason, verdict
    assert verdict.status == ("pass" if reason == "passed" else "fail")


def test_who_only_waits_is_ended_by_the_clock_on_the_wall(sandbox: Sandbox) -> None:
    verdict = judged(sandbox, "import time\ndef f(x): time.sleep(60)", wall_s=1.5)
    assert (verdict.status, verdict.reason) == ("fail", "timeout")
    assert 1.0 < verdict.wall_s < 10.0
    assert judged(sandbox, "def f(x): return x + 1").status == "pass"


@pytest.mark.parametrize(
    ("imports", "what"),
    [
        ("import ctypes", "module ctypes"),
        ("import os, bz2 as b", "module bz2"),
        ("from lzma import *", "module lzma"),
        ("from os import path, fork", "os.fork"),
        ("from hashlib import scrypt", "hashlib.scrypt"),
        ("from importlib import resources", "importlib.resources"),
        ("from multiprocessing.pool import ThreadPool", "module multiprocessing.pool"),
    ],
)
@pytest.mark.parametrize("integrity", ["separated", "shared"])
def test_what_it_cannot_import_is_not_failed(
    sandbox: Sandbox, imports: str, what: str, integrity: Integrity
) -> None:
    verdict = judged(sandbox, f"{imports}\ndef f(x): return x + 1", integrity=integrity)
    assert (verdict.status, verdict.reason) == ("invalid", "unsupported"), verdict
    assert verdict.detail == what


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("import asyncio\nasync def g(): return 2\ndef f(x): return asyncio.run(g())", ""),
        ("import threading\ndef f(x): threading.Thread(target=print).start()", "thread"),
        ("import os\ndef f(x): return os.fork()", "os.fork"),
        ("def f(x): return open('x', 'w')", "files"),
        ("import subprocess\ndef f(x): return subprocess.run(['ls'])", ""),
        ("import zoneinfo\ndef f(x): return zoneinfo.ZoneInfo('Europe/Paris')", "importlib"),
        ("import getpass\ndef f(x): return getpass.getuser()", "module pwd"),
        ("def f(x): return len(range(3 * 10**9))", "32 bits"),
        ("from itertools import islice\ndef f(x): return list(islice([], 3 * 10**9))", "32 bits"),
        ("from collections import deque\ndef f(x): return deque([], 3 * 10**9)", "32 bits"),
        (
            "import asyncio\nasync def g(): return 2\n"
            "def f(x): return asyncio.get_event_loop().run_until_complete(g())",
            "asyncio",
        ),
        (
            "from concurrent.futures import ThreadPoolExecutor\n"
            "def f(x):\n    with ThreadPoolExecutor() as pool: return pool.submit(abs, 2).result()",
            "thread",
        ),
    ],
)
@pytest.mark.parametrize("integrity", ["separated", "shared"])
def test_a_failure_says_what_the_guest_lacks(
    sandbox: Sandbox, code: str, what: str, integrity: Integrity
) -> None:
    verdict = judged(sandbox, code, integrity=integrity)
    assert verdict.status == "fail", verdict
    assert verdict.detail.startswith("the guest lacks ")
    assert what in verdict.detail


@pytest.mark.parametrize("integrity", ["separated", "shared"])
@pytest.mark.parametrize(
    "code",
    [
        "def f(x): raise AttributeError(\"module 'unittest.__main__' has no attribute 'x'\")",
        "def f(x): raise AttributeError(\"module 'os' has no attribute 'fork'\")",
        "def f(x): raise ModuleNotFoundError(\"No module named 'numpy'\")",
        "def f(x): raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')",
        "def f(x): raise ImportError(\"cannot import name 'fork' from 'os'\")",
        "def f(x): raise NotImplementedError",
        "def f(x): raise ValueError('Not supported')",
        'def f(x): raise RuntimeError("can\'t start new thread")',
        "def f(x): raise FileNotFoundError(44, 'No such file or directory')",
        "def f(x): raise OverflowError('Python int too large to convert to C ssize_t')",
        "def f(x): raise LookupError('unknown encoding: mbcs')",
        "def f(x): return 'wasi'",
        "def f(x): return \"ModuleNotFoundError: No module named 'numpy'\"",
        "import io\ndef f(x): return io.StringIO().fileno()",
        "import math\ndef f(x): return math.squareroot(x)",
        "from math import squareroot",
        "import os.no_such_module",
        "import winreg",
        "def f(x): return 'a'.encode('no-such-encoding')",
        "def f(x): return 10**400 * 1.5",
    ],
)
def test_what_a_program_says_is_no_lack(sandbox: Sandbox, code: str, integrity: Integrity) -> None:
    verdict = judged(sandbox, code, integrity=integrity)
    assert verdict.status == "fail", verdict
    assert "the guest lacks" not in verdict.detail


@pytest.mark.parametrize(
    "code",
    [
        "import sys\ndef f(x): return 2 if min(sys.maxsize, 10**12) == 10**12 else 0",
        "import codecs\ndef f(x): return 2 if codecs.encode('a', 'rot13') == 'n' else 0",
        "def f(x): return len('a'.encode('utf-16-le'))",
        "def f(x): return len(b'\\\\n'.decode('unicode_escape')) + 1",
        "from xml.etree import ElementTree as t\ndef f(x): return len(t.XML('<a>12</a>').text)",
        "from unittest.mock import patch\ndef f(x): return 2",
        "from typing import Pattern, ContextManager\ndef f(x): return 2",
    ],
)
def test_what_it_can_run_passes(sandbox: Sandbox, code: str) -> None:
    assert judged(sandbox, code).reason == "passed"


def test_the_table_of_lacks_is_recorded(sandbox: Sandbox) -> None:
    assert sandbox.capabilities().kind == "wasm"
    lacks = component.about(component.compiled(lambda _: None)).lacks
    assert {"ctypes", "bz2", "multiprocessing.pool"} <= set(lacks.modules)
    assert not {"json", "math", "winreg", "numpy"} & set(lacks.modules)
    assert "fork" in lacks.names["os"]
    assert "Pattern" not in lacks.names.get("typing", ())


def test_a_caught_lack_is_no_lack(sandbox: Sandbox) -> None:
    code = "try:\n    import bz2\nexcept ImportError:\n    bz2 = None\ndef f(x): return x + 1\n"
    assert judged(sandbox, code).status == "pass"
    assert judged(sandbox, f'"""\nimport bz2\n"""\n{code}').status == "pass"


def test_nothing_of_one_program_is_there_for_the_next(sandbox: Sandbox) -> None:
    spoil = "import builtins, sys\nbuiltins.len = None\nsys.modules['math'] = None\n"
    look = "import math\ndef f(x): return len([x]) + 1\n"
    for integrity in ("separated", "shared"):
        judged(sandbox, spoil, integrity=integrity)
        assert judged(sandbox, look, integrity=integrity).status == "pass"


def test_the_host_is_out_of_sight(sandbox: Sandbox) -> None:
    code = "import os\ndef f(x):\n    try: return os.listdir('/')\n    except OSError: return 2\n"
    assert judged(sandbox, code).status == "pass"
    assert judged(sandbox, "import os\ndef f(x): return 2 + len(os.environ)").status == "pass"


def test_standard_input_is_not_supported_but_methods_are(sandbox: Sandbox) -> None:
    script = Tests("", "", integrity="separated", texts=text_cases.pack([("1", "1")]))
    matcher = "def matcher():\n    return lambda arguments, expected, got: got == expected\n"
    calls = text_cases.pack([("1\n2", "3")], "calls")
    adapter = "def __adapted__(*values, _method=Solution().f):\n    return _method(*values)\n"
    method = Tests("f", matcher, integrity="separated", texts=calls, adapter=adapter)
    program = Program("class Solution:\n    def f(self, a, b): return a + b\n", "x")
    wrong = Program("class Solution:\n    def f(self, a, b): return a - b\n", "x")
    jobs = [Job("s", 0, program, script), Job("m", 0, program, method), Job("w", 0, wrong, method)]
    found = {v.task_id: (v.status, v.reason) for v in sandbox.judge(jobs)}
    assert found == {
        "s": ("invalid", "unsupported"), "m": ("pass", "passed"), "w": ("fail", "wrong-answer"),
    }  # fmt: skip


def test_unsupported_tasks_are_listed_beside_the_score(
    assay: Cli, mini: Benchmark, tmp_path: Path
) -> None:
    (first, code), *others = references(mini)
    samples = write_completions(tmp_path / "s.jsonl", [(first, f"import bz2\n{code}"), *others])
    asked = ("score", samples, "--benchmark", "mini", "--sandbox", "wasm")
    shown = assay(*asked)
    assert shown.returncode == INCOMPLETE, shown.stderr
    assert f"unsupported {first} (module bz2)" in shown.stdout
    result = json.loads(assay(*asked, "--json").stdout)
    assert result["results"]["unsupported"] == {first: "module bz2"}
    assert result["results"]["pass_at_1"] == 1.0
    assert result["protocol"]["python"].startswith("cpython 3.")


def test_results_name_the_component(sandbox: Sandbox) -> None:
    path = component.compiled(lambda _: None)
    digest = file_sha256(path.with_suffix(".wasm"))
    assert f"component {digest}" in sandbox.capabilities().guarantees
    assert sandbox.capabilities().image == digest


def test_a_damaged_file_is_made_again(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    built = []

    def build(folder: Path, _note: object) -> None:
        built.append(folder)
        path = folder / "component.cwasm"
        path.write_bytes(b"new")
        lacks = component.GuestLacks((), {}, ())
        record = component.Build({path.name: file_sha256(path)}, {}, "cpython", lacks)
        write_sealed(folder / "component.json", component.PURPOSE, codec.pretty(record).encode())

    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(component, "_build", build)
    path = component.compiled(lambda _: None)
    assert len(built) == 1
    assert component.compiled(lambda _: None) == path
    assert len(built) == 1
    path.write_bytes(b"damaged")
    component.compiled(lambda _: None)
    assert len(built) == 2
    assert sandbox.capabilities().kind == "wasm"


def test_without_the_packages_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(component, "PACKAGES", ("wasmtime", "no-such-package"))
    with pytest.raises(SandboxError, match=r"pip install 'assay-eval\[wasm\]'"):
        open_sandbox("wasm", 1)
