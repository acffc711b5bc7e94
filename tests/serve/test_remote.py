"""Judging by a service gives the verdicts that judging in this process gives."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import assay
from assay import RemoteJudge
from assay.errors import SandboxError, UsageError
from assay.judging import client as client_module
from assay.judging.client import JudgeClient, number_of
from assay.judging.wire import decode_verdict, encode_verdict
from assay.pipeline import ScoreConfig, score
from assay.progress import Silent
from assay.runs import RunReader
from assay.sandbox import open_sandbox
from assay.serve.server import JudgeServer
from assay.types import Benchmark, Job, Limits, Program, Tests, Verdict
from tests.conftest import write_completions
from tests.serve.conftest import TOKEN, serving, token_file, wait_until

# What a repeated execution gives again; time and memory differ.
LASTING = (
    "status", "reason", "detail", "failing_test", "integrity", "rule", "groups", "sample", "call",
    "expected", "actual", "difference", "input",
)  # fmt: skip
FAILING = (
    "import os\nos._exit(0)\n", "import sys\nsys.exit(0)\n", "def (", "raise ValueError('no')\n",
    "import os\nos.kill(os.getpid(), 9)\n", "x = 'a' * (1 << 40)\n",
)  # fmt: skip


def lasting(verdicts: list[Verdict]) -> list[list[object]]:
    """Return what must be equal. A program that leaves may do so before or after its first call."""
    left = ("exit", "signal")
    same = [replace(v, failing_test="", call=None) if v.reason in left else v for v in verdicts]
    return [[getattr(v, name) for name in LASTING] for v in same]


def programs_of(benchmark: Benchmark, count: int) -> list[tuple[str, str]]:
    problems = benchmark.problems[:count]
    found = [(p.task_id, p.reference) for p in problems]
    found += [(p.task_id, FAILING[n % len(FAILING)]) for n, p in enumerate(problems)]
    return found + [
        (p.task_id, f"def {p.tests.entry_point}(*_):\n    return None\n") for p in problems
    ]


@pytest.mark.parametrize("name", ["humaneval", "mini"])
def test_a_remote_judge_gives_the_same_verdicts(server: JudgeServer, name: str) -> None:
    benchmark = assay.load_benchmark(name)
    programs = programs_of(benchmark, 12)
    with assay.Judge(name, workers=1) as here, RemoteJudge(server.url, name) as there:
        assert lasting(there.judge(programs)) == lasting(here.judge(programs))
        assert there.unscorable == here.unscorable
        assert there.benchmark.data_sha256 == benchmark.data_sha256


@pytest.mark.slow
def test_all_references_of_humaneval_pass_remotely(
    server: JudgeServer, humaneval: Benchmark
) -> None:
    with RemoteJudge(server.url, "humaneval") as judge:
        found = judge.judge([(p.task_id, p.reference) for p in humaneval.problems])
    assert {v.status for v in found} == {"pass"}
    assert [v.task_id for v in found] == [p.task_id for p in humaneval.problems]


def test_a_remote_judge_has_the_methods_of_a_judge() -> None:
    public = [name for name in vars(assay.Judge) if not name.startswith("_")]
    assert set(public) <= set(vars(RemoteJudge))


def test_completions_and_tests_of_ones_own(server: JudgeServer, mini: Benchmark) -> None:
    one = mini.problems[0]
    with RemoteJudge(server.url, "mini") as judge:
        (verdict,) = judge.judge_completions({one.task_id: f"```python\n{one.reference}```"})
        assert (verdict.status, verdict.rule) == ("pass", "fenced")
        tests = {"entry_point": "f", "cases": [{"arguments": [1], "expected": 2}]}
        found = judge.judge_tests(["def f(x):\n    return 2\n", "exit(0)"], tests)
        assert [v.status for v in found] == ["pass", "fail"]
        with pytest.raises(UsageError, match="is not a task of mini"):
            judge.judge([("nobody", "")])


def test_limits_of_a_remote_judge_hold(server: JudgeServer, mini: Benchmark) -> None:
    limits = Limits(cpu_s=0.5)
    program = [(mini.problems[0].task_id, "while True:\n    pass\n")]
    with RemoteJudge(server.url, "mini", limits=limits) as judge:
        assert judge.judge(program)[0].reason == "timeout"


@pytest.mark.parametrize("name", ["humaneval", "mini", "cruxeval-o"])
def test_a_remote_sandbox_gives_the_same_verdicts(server: JudgeServer, name: str) -> None:
    benchmark = assay.load_benchmark(name)
    jobs = [
        Job(
            task_id, number, Program(code, "given"), problem.tests, benchmark.limits,
            benchmark.imports, seed="fixed",
        )
        for number, (task_id, code) in enumerate(programs_of(benchmark, 6))
        for problem in benchmark.problems if problem.task_id == task_id
    ]  # fmt: skip
    here, there = open_sandbox("process", 1), open_sandbox(f"remote:{server.url}", 0)
    try:
        expected = {v.sample: v for v in here.judge(jobs)}
        found = {v.sample: v for v in there.judge(iter(jobs))}
        assert lasting([found[n] for n in sorted(found)]) == lasting(
            [expected[n] for n in sorted(expected)]
        )
    finally:
        here.close()
        there.close()


def test_outputs_of_references_are_the_same(server: JudgeServer) -> None:
    benchmark = assay.load_benchmark("humanevalplus-mini")
    problems = [p for p in benchmark.problems if p.tests.cases][:3]
    jobs = [
        Job(p.task_id, 0, Program(p.reference, "reference"), p.tests, benchmark.limits)
        for p in problems
    ]
    here, there = open_sandbox("process", 1), open_sandbox(f"remote:{server.url}", 0)
    try:
        outputs: list[dict[str, Any]] = []
        for sandbox in (here, there):
            found = {v.task_id: cases for v, cases in sandbox.outputs(jobs)}
            outputs.append(
                {task: replace(c, slowest_s=0.0) for task, c in found.items() if c is not None}
            )
        assert len(outputs[0]) == 3
        assert outputs[0] == outputs[1]
    finally:
        here.close()
        there.close()


def score_remotely(folder: Path, url: str, samples: list[tuple[str, str]]) -> RunReader:
    path = write_completions(folder / "samples.jsonl", samples)
    config = ScoreConfig(
        "mini", folder / "results", samples_file=str(path), sandbox=f"remote:{url}",
        tests_seed="fixed", no_cache=True,
    )  # fmt: skip
    return RunReader(score(config, Silent()).folder)


def test_a_run_is_judged_remotely_and_says_by_whom(
    server: JudgeServer, mini: Benchmark, tmp_path: Path
) -> None:
    samples = [(p.task_id, p.reference) for p in mini.problems]
    run = score_remotely(tmp_path, server.url, samples)
    assert {v.status for v in run.verdicts.values()} == {"pass"}
    sandbox = run.about.environments[0].sandbox
    assert sandbox is not None
    identity = server.service.identity
    assert sandbox.kind == f"remote process/{identity.tier}, assay {assay.__version__}"
    assert (sandbox.tier, sandbox.python) == (identity.tier, identity.python)
    protocol = json.loads((run.path / "protocol.json").read_text())
    assert protocol["sandbox"] == sandbox.kind


def test_a_run_is_not_resumed_by_a_service_of_another_tier(
    server: JudgeServer, mini: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = [(p.task_id, p.reference) for p in mini.problems]
    first = score_remotely(tmp_path, server.url, samples)
    assert score_remotely(tmp_path, server.url, samples).path == first.path
    identity = server.service.identity
    monkeypatch.setattr(server.service, "identity", replace(identity, tier="landlock"))
    assert server.service.about()["judge"]["tier"] == "landlock"
    # The server's answers still have the old tier: it changed after the run had begun.
    with pytest.raises(SandboxError, match="has changed from"):
        score_remotely(tmp_path, server.url, samples)


def test_a_service_with_another_interface_is_refused(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = replace(server.service.identity, interface=2)
    monkeypatch.setattr(server.service, "identity", changed)
    with pytest.raises(SandboxError, match="has version 2 of the interface"):
        RemoteJudge(server.url)
    with pytest.raises(SandboxError, match="has version 2 of the interface"):
        open_sandbox(f"remote:{server.url}", 0)


def test_no_verdict_of_a_service_that_has_changed_is_used(server: JudgeServer) -> None:
    with RemoteJudge(server.url, "mini") as judge:
        judge._client._judge = {**judge.identity, "tier": "landlock"}
        verdicts = judge.stream([(judge.benchmark.problems[0].task_id, "")])
        with pytest.raises(SandboxError, match="it has changed from"):
            next(verdicts)


def test_a_batch_that_is_too_large_is_sent_in_parts(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = {"entry_point": "f", "cases": [{"arguments": [1], "expected": 1}]}
    with RemoteJudge(server.url) as judge:
        options = replace(server.service.options, body_mb=1)
        monkeypatch.setattr(server.service, "options", options)
        program = f"def f(x):\n    return x\n#{'x' * 400_000}\n"
        found = judge.judge_tests([program] * 3 + ["def f(x):\n    return 0\n"], tests)
        assert [v.status for v in found] == ["pass"] * 3 + ["fail"]
        with pytest.raises(SandboxError, match="program: is larger than the judge service accepts"):
            judge.judge_tests([program * 3], tests)


@pytest.mark.parametrize("index", [1, 2, -1, None])
def test_verdicts_that_nobody_asked_for_are_refused(index: int | None) -> None:
    with pytest.raises(SandboxError, match="a program that it was not given"):
        number_of({"index": index}, order=[5, 7], left={5})


@pytest.mark.slow
def test_a_service_that_restarts_in_the_middle_costs_no_verdict() -> None:
    tests = {"entry_point": "f", "cases": [{"arguments": [1], "expected": 1}]}
    programs = [f"import time\ntime.sleep(0.1)\ndef f(x):\n    return {n % 2}\n" for n in range(40)]
    found: list[str] = []
    with serving() as first, RemoteJudge(first.url) as judge:
        port = first.port
        thread = threading.Thread(
            target=lambda: found.extend(v.status for v in judge.judge_tests(programs, tests))
        )
        thread.start()
        wait_until(lambda: first.service.engine.backlog.taken > 0)
        first.end()
        with serving(port=port):
            thread.join()
    assert found == ["fail", "pass"] * 20


def test_a_weaker_tier_than_asked_for_is_an_error(server: JudgeServer) -> None:
    with pytest.raises(SandboxError, match="has the tier"):
        open_sandbox(f"remote:{server.url}", 0, "wished")


def test_a_token_file_opens_a_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job("t", 0, Program("def f():\n    return 1\n", ""), Tests("f", "assert f() == 1"))
    with serving(token=TOKEN) as server:
        with pytest.raises(SandboxError, match="authentication failed \\(401"):
            open_sandbox(f"remote:{server.url}", 0)
        monkeypatch.setenv("ASSAY_JUDGE_TOKEN_FILE", str(token_file(tmp_path)))
        sandbox = open_sandbox(f"remote:{server.url}", 0)
        assert [v.status for v in sandbox.judge([job])] == ["pass"]
        sandbox.close()
        with RemoteJudge(server.url, "mini", token=TOKEN) as judge:
            assert judge.identity["tier"]


def test_closing_early_ends_the_requests(server: JudgeServer) -> None:
    tests = Tests("f", "assert f() == 1")
    sleeping = Program("import time\ntime.sleep(1)\ndef f():\n    return 1\n", "")

    def endless() -> Iterator[Job]:
        number = 0
        while True:
            yield Job("t", number, sleeping, tests)
            number += 1

    sandbox = open_sandbox(f"remote:{server.url}", 1)
    verdicts: Any = sandbox.judge(endless())
    assert next(verdicts).status == "pass"
    verdicts.close()
    sandbox.close()
    backlog = server.service.engine.backlog

    wait_until(lambda: backlog.waiting == 0, 20)
    wait_until(lambda: backlog.taken == 0, 40)


def test_an_error_of_the_jobs_is_raised_after_the_verdicts(server: JudgeServer) -> None:
    job = Job("t", 0, Program("def f():\n    return 1\n", ""), Tests("f", "assert f() == 1"))

    def failing() -> Iterator[Job]:
        yield job
        raise ValueError("of the jobs")

    sandbox = open_sandbox(f"remote:{server.url}", 0)
    found: list[Verdict] = []

    def collect() -> None:
        for verdict in sandbox.judge(failing()):
            found.append(verdict)

    with pytest.raises(ValueError, match="of the jobs"):
        collect()
    assert [v.status for v in found] == ["pass"]
    sandbox.close()


def test_a_service_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "FIRST_PAUSE_S", 0.001)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(SandboxError, match="does not answer .*Connection refused"):
            RemoteJudge(url, "mini")
    for bad in ("nonsense", "ftp://host", "http://", "http://host:port"):
        with pytest.raises(SandboxError, match="is not the address of a judge service"):
            JudgeClient(bad)


@pytest.mark.parametrize(
    ("status", "content", "error"),
    [
        (200, b"", "does not answer"),  # it ended after the headers
        (409, b'{"detail": "d", "unknown_tests": 5}', "refused a request \\(409 d"),
        (500, b'{"detail": "d", "unknown_tests": ["a"]}', "refused a request \\(500 d"),
    ],
)
def test_a_strange_answer_is_one_line(
    status: int, content: bytes, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "FIRST_PAUSE_S", 0.001)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header(client_module.JUDGE_HEADER, "null")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as strange:
        thread = threading.Thread(target=strange.serve_forever)
        thread.start()
        client = JudgeClient(f"http://127.0.0.1:{strange.server_port}")
        with pytest.raises(SandboxError, match=error):
            next(client.judge_all(["p", "q"], lambda programs, _: {"programs": programs}))
        strange.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["status", "integrity", "groups"])
def test_a_line_that_lacks_a_field_is_not_a_verdict(name: str) -> None:
    line = json.loads(encode_verdict(Verdict("t", 0, "pass", "passed", integrity="separated")))
    del line[name]
    with pytest.raises(SandboxError, match=f"not a verdict: field '{name}' is missing"):
        decode_verdict(line, "t", 0)


def test_a_busy_service_is_waited_for() -> None:
    """A client of a full service tries again when it was told to."""
    with serving(queue=2, client_quota=2, batch=2) as server:
        judges = [RemoteJudge(server.url, "mini") for _ in range(3)]
        task = judges[0].benchmark.problems[0]
        program = [(task.task_id, f"import time\ntime.sleep(0.3)\n{task.reference}")] * 4
        found: list[str] = []
        threads = [
            threading.Thread(target=lambda j=j: found.extend(v.status for v in j.judge(program)))
            for j in judges
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for judge in judges:
            judge.close()
        assert found == ["pass"] * 12
