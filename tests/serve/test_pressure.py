"""Load, clients that leave, and ends: nothing is lost, and no failure of ours is a wrong answer."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import httpx
import pytest

from assay.errors import SandboxError, UsageError
from assay.sandbox import Stage
from assay.serve.backlog import Backlog, FullError, StageSupervisor, Ticket
from assay.serve.fusion.languages import RUN, EndedRun, find_languages
from assay.serve.server import JudgeServer
from assay.serve.stage import JudgeAnswer, JudgeWork
from assay.serve.telemetry import Metrics
from assay.types import Capabilities, Limits, Status
from soak import SoakOptions, find_children, run_soak
from tests.e2e.test_resume import descendants, survivors
from tests.serve.conftest import Process, judge, make_options, serving, wait_until
from tests.serve.test_judge import CODE, RIGHT

SLEEPS = {"program": "import time\ntime.sleep(1)\n" + RIGHT, "tests": CODE}
FAST = {"program": RIGHT, "tests": CODE}
STATUSES: dict[int, Status] = {1: "invalid", 2: "pass"}  # of the first attempt, and the second


def ticket(backlog: Backlog, count: int, client: str = "a", size: int = 1) -> Ticket:
    tasks = [(RUN, JudgeWork(backlog.next_number(), "program", "", Limits())) for _ in range(count)]
    return Ticket(client, size << 20, lambda _: None, deque(tasks))


def make_backlog(programs: int, size_mb: int, per_client: int) -> Backlog:
    return Backlog(make_options(queue=programs, queue_mb=size_mb, client_quota=per_client))


def take(items: Iterator[Any], count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        if (task := next(items)) is not None:
            found.append(task[1].number)
    return found


def answered(numbers: Sequence[int]) -> list[JudgeAnswer]:
    return [JudgeAnswer(number, "pass", "passed") for number in numbers]


def test_requests_take_turns() -> None:
    backlog = make_backlog(100, 100, 100)
    backlog.add(ticket(backlog, 4), 1)
    backlog.add(ticket(backlog, 2), 1)
    assert take(backlog.items(), 6) == [0, 4, 1, 5, 2, 3]


def test_the_queue_is_bounded_in_programs_bytes_and_per_client() -> None:
    backlog = make_backlog(programs=5, size_mb=10, per_client=3)
    backlog.add(ticket(backlog, 3, "a", 4), 1)
    for count, client, size, why in (
        (1, "a", 1, "this client"), (3, "b", 1, "is full"), (1, "b", 7, "bytes")
    ):  # fmt: skip
        with pytest.raises(FullError, match=why) as caught:
            backlog.add(ticket(backlog, count, client, size), 7)
        assert caught.value.retry_after_s == 7
    backlog.answer(answered(take(backlog.items(), 3)))
    backlog.add(ticket(backlog, 3, "a", 10), 1)
    assert (backlog.waiting, backlog.taken, backlog.size) == (3, 0, 10 << 20)


def test_what_is_cancelled_is_not_judged_and_leaves_room() -> None:
    backlog = make_backlog(10, 10, 10)
    one, other = ticket(backlog, 4), ticket(backlog, 1)
    backlog.add(one, 1)
    items = backlog.items()
    taken = take(items, 1)
    assert backlog.cancel(one) == 3
    backlog.add(other, 1)
    assert take(items, 1) == [4]
    backlog.answer(answered([*taken, 4]))
    assert (backlog.waiting, backlog.taken, backlog.size) == (0, 0, 0)
    assert backlog._clients == {}


def test_nothing_is_given_to_a_stage_that_failed() -> None:
    backlog = make_backlog(10, 10, 10)
    backlog.add(ticket(backlog, 3), 1)
    failed = backlog.items()
    assert take(failed, 2) == [0, 1]
    backlog.put_back(backlog.lost())
    assert list(failed) in ([], [None])
    assert sorted(take(backlog.items(), 3)) == [0, 1, 2]


class FailingSandbox:
    """A sandbox whose stages fail before they have answered all."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def run_stage(
        self,
        stage: Stage[Any, Any, Any],
        items: Iterator[Any],
        answer: Callable[[Sequence[Any]], None],
        count: int | None = None,  # noqa: ARG002
    ) -> None:
        for item in items:
            if item is None:
                continue
            if self.failures:
                self.failures -= 1
                raise SandboxError("all judge processes ended")
            context, work = item
            answer([stage.give_up(context, work, "judged")._replace(status="pass")])

    def capabilities(self) -> Capabilities:
        return Capabilities("", "", "")

    judge = outputs = None

    def close(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(("failures", "expected"), [(1, "pass"), (2, "invalid")])
def test_a_failure_of_the_sandbox_is_tried_again_and_then_invalid(
    failures: int, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.serve.backlog.PAUSE_S", 0.01)
    found: list[JudgeAnswer] = []
    reported: list[str] = []
    sandbox: Any = FailingSandbox(failures)
    engine = StageSupervisor(sandbox, 1, make_options(), reported.append)
    one = ticket(engine.backlog, 1)
    one.answer = found.extend
    engine.submit(one)
    wait_until(lambda: bool(found), 10)
    assert [a.status for a in found] == [expected]
    assert reported == ["all judge processes ended"] * failures
    engine.close()


def test_a_language_that_a_busy_machine_could_not_try_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = EndedRun(0, 0.1, b"42\n", b"", {})
    tried: list[list[str]] = []

    def probe(_engine: StageSupervisor, languages: Sequence[str]) -> dict[str, JudgeAnswer]:
        tried.append(list(languages))
        works = JudgeAnswer(0, "pass", "", outputs=ended)
        return {"bash": works, "python": JudgeAnswer(0, STATUSES[len(tried)], "")}

    monkeypatch.setattr("assay.serve.fusion.languages._try", probe)
    assert find_languages(None) == ["bash"]  # type: ignore[arg-type]
    assert tried == [["python", "bash"], ["python"]]


def test_too_many_programs_are_refused_with_a_time_to_come_back() -> None:
    with serving(queue=4, client_quota=3, batch=3) as server:
        statuses, answers = [], []

        def call() -> None:
            response = httpx.post(
                f"{server.url}/judge", json={"programs": [SLEEPS] * 3}, timeout=60
            )
            statuses.append(response.status_code)
            answers.append(response)

        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(statuses) == [200, 429, 429]
        refused = next(one for one in answers if one.status_code == 429)
        assert int(refused.headers["retry-after"]) >= 1
        assert "this client has too many" in refused.json()["detail"]
        assert 'assay_rejected_total{why="' in httpx.get(f"{server.url}/metrics").text


def test_programs_of_a_client_that_leaves_are_dropped() -> None:
    with serving() as server:
        backlog = server.service.engine.backlog
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.url}/judge", json={"programs": [SLEEPS] * 100}, timeout=1.5)
        wait_until(lambda: backlog.waiting == 0, 10)
        wait_until(lambda: backlog.taken == 0, 30)  # those that had been started
        text = httpx.get(f"{server.url}/metrics").text
        done = sum(map(int, re.findall(r"^assay_programs_total\{.*\} (\d+)$", text, re.M)))
        (left,) = re.findall(r"^assay_cancelled_programs_total (\d+)$", text, re.M)
        assert done + int(left) == 100
        assert 'assay_requests_total{route="/judge",status="499"} 1' in text
        with httpx.Client(base_url=server.url) as client:
            assert judge(client, [FAST])[0]["status"] == "pass"


def test_a_client_that_leaves_a_stream_is_noticed_too() -> None:
    with serving() as server:
        backlog = server.service.engine.backlog
        body = {"programs": [SLEEPS] * 60, "stream": True}
        with httpx.stream("POST", f"{server.url}/judge", json=body, timeout=60) as response:
            assert next(response.iter_lines())
        wait_until(lambda: backlog.waiting == 0, 10)
        wait_until(lambda: 'route="/judge",status="499"' in httpx.get(f"{server.url}/metrics").text)


def test_a_request_that_takes_too_long_is_no_verdict() -> None:
    with serving(request_s=1.0) as server:
        body: dict[str, Any] = {"programs": [SLEEPS] * 8}
        response = httpx.post(f"{server.url}/judge", json=body, timeout=60)
        assert response.status_code == 504
        assert "verdicts" not in response.text


def test_a_stream_that_takes_too_long_says_so() -> None:
    with serving() as server, httpx.Client(base_url=server.url, timeout=60) as client:
        judge(client, [FAST])  # a worker is there
        server.service.options = replace(server.service.options, request_s=2.0)
        endless = {**FAST, "program": "while True:\n    pass\n", "limits": {"cpu_s": 20}}
        response = client.post("/judge", json={"programs": [FAST, endless], "stream": True})
        first, last = response.text.splitlines()
        assert '"index":0' in first
        assert last == '{"error":"the request took too long"}'
        assert 'route="/judge",status="504"' in client.get("/metrics").text


def test_bodies_on_their_way_are_bounded(client: httpx.Client, server: JudgeServer) -> None:
    server.service.body_bytes = server.service.options.queue_mb << 20
    try:
        response = client.post("/judge", json={"programs": [FAST]})
    finally:
        server.service.body_bytes = 0
    assert (response.status_code, response.headers["retry-after"]) == (429, "1")


def test_a_body_that_never_arrives_is_given_up() -> None:
    with serving(body_s=0.3) as server, socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(b"POST /judge HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{")
        assert raw.recv(100).startswith(b"HTTP/1.1 408")


def test_killed_workers_cost_no_wrong_verdict(client: httpx.Client) -> None:
    judge(client, [FAST])  # a worker is there
    programs = [{"program": f"import time\ntime.sleep(0.1)\n{RIGHT}", "tests": CODE}] * 20
    killed: list[int] = []

    def kill() -> None:
        for _ in range(2):
            time.sleep(1.5)
            for pid in find_children(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    found = judge(client, programs)
    killer.join()
    assert killed
    assert {v["status"] for v in found} <= {"pass", "invalid"}
    assert sum(v["status"] == "pass" for v in found) >= 15


def test_sigterm_answers_what_is_open_and_leaves_no_process(
    start: Callable[..., Process],
) -> None:
    process = start()
    answers: list[httpx.Response] = []
    call = threading.Thread(
        target=lambda: answers.append(
            httpx.post(f"{process.url}/judge", json={"programs": [SLEEPS] * 2}, timeout=60)
        )
    )
    call.start()
    wait_until(lambda: "assay_running_programs 0" not in httpx.get(f"{process.url}/metrics").text)
    children = descendants(process.pid)
    code, log = process.end()
    call.join()
    assert [v["status"] for v in answers[0].json()["verdicts"]] == ["pass", "pass"]
    assert code == 0
    assert '"event":"draining"' in log
    assert '"event":"ended"' in log
    assert survivors(children) == []


@pytest.mark.slow
def test_a_short_soak_has_no_wrong_verdict_and_leaves_nothing() -> None:
    soak = run_soak(SoakOptions(requests=400, connections=8, hang_up=0.05, kill_every_s=8.0))
    assert soak.failures() == []
    assert soak.outcomes["pass"] > 100
    assert soak.outcomes["fail"] > 100
    assert soak.killed > 0


def test_counts_keep_all_their_digits() -> None:
    metrics = Metrics()
    metrics.count("assay_requests_total", 1_234_567, route="/judge", status="200")
    metrics.count("assay_program_cpu_seconds_total", 1_234_567.25)
    text = metrics.render()
    assert 'assay_requests_total{route="/judge",status="200"} 1234567\n' in text
    assert "assay_program_cpu_seconds_total 1234567.25\n" in text


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(UsageError, match="must be in increasing order"):
        make_options(batch=10, client_quota=5).check()
    with pytest.raises(UsageError, match="--body-mb 64: is more than"):
        make_options(body_mb=64, queue_mb=10).check()
