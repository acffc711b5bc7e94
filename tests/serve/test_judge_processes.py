"""The service on judge processes, as on machines with many cores."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

import httpx
import pytest

from assay.sandbox.judges.processes import JudgeProcesses
from soak import find_children
from tests.serve.conftest import READ_S, judge, serving
from tests.serve.test_judge import CASES, CODE, RIGHT, SCRIPT, STDIN, WRONG


@pytest.fixture(scope="module")
def judged() -> Iterator[httpx.Client]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("assay.sandbox.kinds.process.count_judges", lambda *_: 2)
        with serving(workers=2) as server:
            assert isinstance(server.service.engine.sandbox, JudgeProcesses)
            with httpx.Client(base_url=server.url, timeout=READ_S) as client:
                yield client


def test_all_kinds_of_work_are_done_there(judged: httpx.Client) -> None:
    kinds = [
        ({"program": RIGHT, "tests": CODE}, "pass"),
        ({"program": WRONG, "tests": CASES}, "fail"),
        ({"program": SCRIPT, "tests": STDIN}, "pass"),
        ({"completion": f"```python\n{RIGHT}```", "tests": CASES}, "pass"),
        ({"completion": "no code", "tests": CASES}, "fail"),
    ]
    found = judge(judged, [one for one, _ in kinds * 8])
    assert [v["status"] for v in found] == [status for _, status in kinds * 8]
    run = judged.post("/run_code", json={"code": "print(1)", "language": "python"}).json()
    assert run["run_result"]["stdout"] == "1\n"


def test_a_judge_process_that_is_killed_costs_no_wrong_verdict(judged: httpx.Client) -> None:
    def kill() -> None:
        time.sleep(0.5)
        for pid in find_children(os.getpid())[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    slow = f"import time\ntime.sleep(0.2)\n{RIGHT}"
    found = judge(judged, [{"program": slow, "tests": CODE}] * 30)
    killer.join()
    assert [v["status"] for v in found] == ["pass"] * 30
    assert judge(judged, [{"program": WRONG, "tests": CODE}])[0]["status"] == "fail"
